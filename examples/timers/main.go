// Command timers shows what became of the timers of POSIX when their lookup left its lock: it has
// goroutines call Gettime, with the lookup as it was before and as it is since, in turns, on as many
// CPUs as there are. The package that it measures is in the folder posix, and is of use elsewhere.
//
//	go run ./examples/timers [-goroutines 16] [-time d] [-rounds 10] [-cpus 1,2,...]
//
// The exit status is 2 for wrong arguments and 1 when writing fails.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/quiesce-go/quiesce/asm"
)

const usage = `usage: timers [-goroutines n] [-time d] [-rounds n] [-cpus n,n,...]

  -goroutines n   how many call Gettime, each for a timer of its own (16)
  -time d         how long each measurement takes (what makes all take 16s, at most 1s)
  -rounds n       how often each is made (10)
  -cpus n,n,...   on how many CPUs (1, 2, 4 and so on, up to all)
`

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

// settings is what the flags say.
type settings struct {
	goroutines int
	time       time.Duration
	rounds     int
	cpus       []int
}

// run carries out the command line args and returns the exit status.
func run(args []string, stdout, stderr io.Writer) int {
	s, err := parse(args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		fmt.Fprint(stdout, usage)
		return 0
	case err != nil:
		fmt.Fprintf(stderr, "timers: %v\n\n%s", err, usage)
		return 2
	}
	if err := s.report(stdout, s.measure(stderr)); err != nil {
		fmt.Fprintln(stderr, "timers:", err)
		return 1
	}
	return 0
}

func parse(args []string) (settings, error) {
	s := settings{goroutines: 16, rounds: 10}
	flags := flag.NewFlagSet("timers", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.IntVar(&s.goroutines, "goroutines", s.goroutines, "")
	flags.DurationVar(&s.time, "time", s.time, "")
	flags.IntVar(&s.rounds, "rounds", s.rounds, "")
	flags.Func("cpus", "", func(list string) error {
		s.cpus = nil
		for _, word := range strings.Split(list, ",") {
			n, err := strconv.Atoi(word)
			if err != nil || n < 1 {
				return errors.New("want numbers above 0")
			}
			s.cpus = append(s.cpus, n)
		}
		return nil
	})
	if err := flags.Parse(args); err != nil {
		return s, err
	}
	switch {
	case flags.NArg() > 0:
		return s, fmt.Errorf("unexpected argument %q", flags.Arg(0))
	case s.goroutines < 1 || s.rounds < 1 || s.time < 0:
		return s, errors.New("-goroutines and -rounds have to be above 0, and -time not below")
	}
	if s.cpus == nil {
		for n := 1; n < runtime.NumCPU(); n *= 2 {
			s.cpus = append(s.cpus, n)
		}
		s.cpus = append(s.cpus, runtime.NumCPU())
	}
	if s.time == 0 {
		s.time = min(time.Second, 16*time.Second/time.Duration(2*len(s.cpus)*s.rounds*twins))
	}
	return s, nil
}

// A row is what was measured side by side.
type row struct {
	armed bool
	cpus  int
	perS  [twins][]float64 // of each round
	gain  []float64        // of each round
}

// measure makes all measurements, and tells progress how far it is.
func (s settings) measure(progress io.Writer) (rows []row) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	defer fmt.Fprintln(progress)
	for _, armed := range []bool{false, true} {
		for _, cpus := range s.cpus {
			runtime.GOMAXPROCS(cpus)
			r := row{armed: armed, cpus: cpus}
			for round := range s.rounds {
				fmt.Fprintf(progress, "\rrow %d of %d, round %d of %d ",
					len(rows)+1, 2*len(s.cpus), round+1, s.rounds)
				var now [twins]float64
				for twin := range now {
					now[twin] = throughput(twin, s.goroutines, armed, s.time)
					r.perS[twin] = append(r.perS[twin], now[twin]/1e6)
				}
				r.gain = append(r.gain, now[after]/now[before])
			}
			rows = append(rows, r)
		}
	}
	return rows
}

// report writes the table and what has to be known with it.
func (s settings) report(w io.Writer, rows []row) error {
	var err error
	printf := func(w io.Writer, format string, args ...any) {
		if _, e := fmt.Fprintf(w, format, args...); err == nil {
			err = e
		}
	}
	printf(w, `%d goroutines call Gettime, each for a timer of its own, in one table.
Millions of calls in a second: the median of %d rounds of %v, and the least and the most.

`, s.goroutines, s.rounds, s.time)

	table := tabwriter.NewWriter(w, 0, 0, 3, ' ', 0)
	printf(table, "timers\tCPUs\tone lock for all lookups\tlookups in read sections\tgain\n")
	for _, r := range rows {
		state := "not armed"
		if r.armed {
			state = "armed"
		}
		printf(table, "%s\t%d\t%s\t%s\t%s\n", state, r.cpus,
			spread(r.perS[before], ""), spread(r.perS[after], ""), spread(r.gain, "x"))
	}
	if e := table.Flush(); err == nil {
		err = e
	}

	printf(w, `
What else runs on the machine makes the gain smaller: waiting for a lock costs nothing while others
have the CPU.

Linux, 16 processes in timer_gettime on another machine, of 16 CPUs, in 2011:
78.67 s before, 3.30 s after, a gain of 23.9x.

%s`, fastPaths())
	return err
}

// spread is the median of v with its extremes, each followed by unit.
func spread(v []float64, unit string) string {
	v = slices.Sorted(slices.Values(v))
	n := len(v)
	return fmt.Sprintf("%.1f%s (%.1f to %.1f)", (v[(n-1)/2]+v[n/2])/2, unit, v[0], v[n-1])
}

// fastPaths says which of them lookups could use here.
func fastPaths() string {
	rseq, fence := "no", "yes"
	if info, err := asm.RSEQ(); err == nil {
		rseq = "yes, registered by " + info.Owner
	} else {
		rseq += ", " + err.Error()
	}
	if err := asm.Membarrier(); err != nil {
		fence = "no, " + err.Error()
	}
	var sources []string
	for _, s := range asm.Sources() {
		sources = append(sources, s.String())
	}
	return fmt.Sprintf(`Read sections without fences (membarrier): %s
Restartable sequences: %s
CPU number from: %s
`, fence, rseq, strings.Join(sources, ", "))
}
