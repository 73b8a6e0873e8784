// Command sem shows what became of the semaphores of System V when the look at permissions left their
// lock: it has goroutines call Op, as it was before and as it is since, in turns. It is the kernel
// developers' semop-multi; the package that it measures is in the folder sysv, and is of use
// elsewhere.
//
//	go run ./examples/sem [-threads 256] [-semaphores 128] [-time 10s] [-rounds 10] [-mode locked|rcu|both]
//
// The exit status is 2 for wrong arguments and 1 when measuring or writing fails.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"os"
	"runtime"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/quiesce-go/quiesce/asm"
)

const usage = `usage: sem [-threads n] [-semaphores n] [-time d] [-rounds n] [-mode locked|rcu|both]

  -threads n      how many goroutines give and take a semaphore (256)
  -semaphores n   how many semaphores the one array has, that all use (128)
  -time d         how long to measure each way, all rounds together (10s)
  -rounds n       in how many rounds, in which the two take turns (10)
  -mode m         locked, the array's lock from lookup to end; rcu, lookup and
                  checks in a read section; or both, side by side (both)
`

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

// settings is what the flags say.
type settings struct {
	threads, nsems, rounds int
	time                   time.Duration
	twins                  []int
}

// run carries out the command line args and returns the exit status.
func run(args []string, stdout, stderr io.Writer) int {
	s, err := parse(args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		fmt.Fprint(stdout, usage)
		return 0
	case err != nil:
		fmt.Fprintf(stderr, "sem: %v\n\n%s", err, usage)
		return 2
	}
	results, err := s.measure(stderr)
	if err == nil {
		err = s.report(stdout, results)
	}
	if err != nil {
		fmt.Fprintln(stderr, "sem:", err)
		return 1
	}
	return 0
}

func parse(args []string) (settings, error) {
	s := settings{threads: 256, nsems: 128, rounds: 10, time: 10 * time.Second, twins: []int{before, after}}
	flags := flag.NewFlagSet("sem", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.IntVar(&s.threads, "threads", s.threads, "")
	flags.IntVar(&s.nsems, "semaphores", s.nsems, "")
	flags.IntVar(&s.rounds, "rounds", s.rounds, "")
	flags.DurationVar(&s.time, "time", s.time, "")
	flags.Func("mode", "", func(mode string) error {
		switch i := slices.Index(twinNames[:], mode); {
		case i >= 0:
			s.twins = []int{i}
		case mode == "both":
			s.twins = []int{before, after}
		default:
			return errors.New("want locked, rcu or both")
		}
		return nil
	})
	if err := flags.Parse(args); err != nil {
		return s, err
	}
	switch {
	case flags.NArg() > 0:
		return s, fmt.Errorf("unexpected argument %q", flags.Arg(0))
	case s.threads < 1 || s.nsems < 1 || s.rounds < 1 || s.time <= 0:
		return s, errors.New("all numbers have to be above 0")
	}
	return s, nil
}

// A result is what was measured of a twin.
type result struct {
	perS   []float64 // millions of calls in a second, of each round
	inLock float64   // share of the CPU's time, in percent; or NaN
}

// measure makes all measurements, and tells progress how far it is. Rounds are measured first, and then
// each twin once more with a profile, which takes some time itself.
func (s settings) measure(progress io.Writer) (results [twins]result, err error) {
	defer fmt.Fprintln(progress)
	d := s.time / time.Duration(s.rounds+1)
	for round := range s.rounds {
		for _, twin := range s.twins {
			fmt.Fprintf(progress, "\rround %d of %d, %-6s ", round+1, s.rounds, twinNames[twin])
			r := &results[twin]
			r.perS = append(r.perS, throughput(twin, s.threads, s.nsems, d)/1e6)
		}
	}
	for _, twin := range s.twins {
		fmt.Fprintf(progress, "\rprofile, %-20s ", twinNames[twin])
		results[twin].inLock, err = lockShare(func() { throughput(twin, s.threads, s.nsems, d) })
		if err != nil {
			return results, err
		}
	}
	return results, nil
}

// report writes the table and what has to be known with it.
func (s settings) report(w io.Writer, results [twins]result) error {
	var err error
	printf := func(w io.Writer, format string, args ...any) {
		if _, e := fmt.Fprintf(w, format, args...); err == nil {
			err = e
		}
	}
	printf(w, `%d threads, %d semaphores in one array, %d CPUs. Each thread gives and takes a semaphore, in turns.
Millions of operations in a second: the median of %d rounds, and the least and the most.

`, s.threads, s.nsems, runtime.GOMAXPROCS(0), s.rounds)
	table := tabwriter.NewWriter(w, 0, 0, 3, ' ', 0)
	printf(table, "mode\toperations\ttime in the lock\t\n")
	for _, twin := range s.twins {
		r := results[twin]
		share := "no samples"
		if !math.IsNaN(r.inLock) {
			share = fmt.Sprintf("%.0f %%", r.inLock)
		}
		printf(table, "%s\t%s\t%s\t%s\n", twinNames[twin], spread(r.perS, ""), share, [twins]string{
			"the array's lock from lookup to end", "lookup and checks in a read section, the lock for the operation"}[twin])
	}
	if e := table.Flush(); err == nil {
		err = e
	}
	if len(s.twins) == twins {
		var gain []float64
		for i, v := range results[after].perS {
			gain = append(gain, v/results[before].perS[i])
		}
		printf(w, "\nGain: %s\n", spread(gain, "x"))
	}
	printf(w, `
Time in the lock is the share of the profile's samples in waiting for the lock, parking for it
and waking from it. What else runs on the machine makes the gain smaller: waiting costs nothing
while others have the CPU.

Linux, the same with processes on another machine, of 4 CPUs, in 2013: 5.0 million before, 59 %% of the
time in the lock; 9.1 million after, 18 %%. A gain of 1.80x.

%s`, fastPaths())
	return err
}

// spread is the median of v with its extremes, each followed by unit.
func spread(v []float64, unit string) string {
	v = slices.Sorted(slices.Values(v))
	n := len(v)
	return fmt.Sprintf("%.2f%s (%.2f to %.2f)", (v[(n-1)/2]+v[n/2])/2, unit, v[0], v[n-1])
}

// fastPaths says which of them lookups could use here.
func fastPaths() string {
	if err := asm.Membarrier(); err != nil {
		return fmt.Sprintf("Read sections without fences (membarrier): no, %v\n", err)
	}
	return "Read sections without fences (membarrier): yes\n"
}
