// Command sem shows what became of the semaphores of System V when the look at permissions left their
// lock: it has goroutines call Op, as it was before and as it is since, in turns. It is the kernel
// developers' semop-multi; the package that it measures is in the folder sysv, and is of use
// elsewhere.
//
//	go run ./examples/sem [-threads 256] [-semaphores 128] [-time 10s] [-rounds 10] [-mode locked|rcu|both]
//	go run ./examples/sem -users 100,400,800 [-time 10s] [-rounds 10] [-mode locked|rcu|both]
//
// With -users it is a mixed load instead, of many arrays that are also looked at, set, and removed.
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
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/quiesce-go/quiesce/asm"
	"github.com/quiesce-go/quiesce/internal/lockprofile"
)

const usage = `usage: sem [-threads n] [-semaphores n] [-time d] [-rounds n] [-mode locked|rcu|both]
       sem -users n,n,... [-time d] [-rounds n] [-mode locked|rcu|both]

  -threads n      how many goroutines give and take a semaphore (256)
  -semaphores n   how many semaphores the one array has, that all use (128)
  -time d         how long to measure each way, all rounds together (10s)
  -rounds n       in how many rounds, in which the two take turns (10)
  -users n,n,...  a mixed load on many arrays instead, by so many goroutines
  -mode m         locked, the array's lock from lookup to end; rcu, lookup and
                  checks in a read section; or both, side by side (both)
`

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

// settings is what the flags say.
type settings struct {
	threads, nsems, rounds int
	users                  []int // if there are any: the mixed load
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
	loads := s.loads()
	err = s.measure(loads, stderr)
	if err == nil {
		err = s.report(stdout, loads)
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
	flags.Func("users", "", func(list string) error {
		s.users = nil
		for _, word := range strings.Split(list, ",") {
			n, err := strconv.Atoi(word)
			if err != nil || n < 1 {
				return errors.New("want numbers above 0")
			}
			s.users = append(s.users, n)
		}
		return nil
	})
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

// A load is what is measured of both twins.
type load struct {
	name    string
	run     func(twin int, d time.Duration) float64 // how many calls in a second
	results [twins]result
}

// A result is what was measured of a twin.
type result struct {
	perS   []float64 // millions of calls in a second, of each round
	inLock float64   // share of the CPU's time, in percent; or NaN
}

// loads are what the flags ask for.
func (s settings) loads() (all []*load) {
	if s.users == nil {
		return []*load{{name: fmt.Sprintf("%d threads", s.threads), run: func(twin int, d time.Duration) float64 {
			return throughput(twin, s.threads, s.nsems, d)
		}}}
	}
	for _, n := range s.users {
		all = append(all, &load{name: fmt.Sprintf("%d users", n), run: func(twin int, d time.Duration) float64 {
			return mixed(twin, n, d)
		}})
	}
	return all
}

// measure makes all measurements, and tells progress how far it is. Rounds are measured first, and then
// each twin once more with a profile, which takes some time itself.
func (s settings) measure(loads []*load, progress io.Writer) error {
	defer fmt.Fprintln(progress)
	d := s.time / time.Duration(s.rounds+1)
	for _, l := range loads {
		for round := range s.rounds {
			for _, twin := range s.twins {
				fmt.Fprintf(progress, "\r%s, round %d of %d, %-6s ", l.name, round+1, s.rounds, twinNames[twin])
				r := &l.results[twin]
				r.perS = append(r.perS, l.run(twin, d)/1e6)
			}
		}
		for _, twin := range s.twins {
			fmt.Fprintf(progress, "\r%s, profile, %-20s ", l.name, twinNames[twin])
			share, err := lockprofile.Share(func() { l.run(twin, d) })
			if err != nil {
				return err
			}
			l.results[twin].inLock = share
		}
	}
	return nil
}

// report writes the table and what has to be known with it.
func (s settings) report(w io.Writer, loads []*load) error {
	var err error
	printf := func(w io.Writer, format string, args ...any) {
		if _, e := fmt.Fprintf(w, format, args...); err == nil {
			err = e
		}
	}
	if s.users == nil {
		printf(w, "%d threads, %d semaphores in one array. Each thread gives and takes a semaphore, in turns.\n", s.threads, s.nsems)
	} else {
		printf(w, "%d arrays of %d semaphores: operations, and now and then a look, a new value, a removal.\n", mixedArrays, mixedSems)
	}
	printf(w, "%d CPUs. Millions of calls in a second: the median of %d rounds, and the least and the most.\n\n",
		runtime.GOMAXPROCS(0), s.rounds)
	table := tabwriter.NewWriter(w, 0, 0, 3, ' ', 0)
	printf(table, "load\tmode\tcalls\ttime in locks\tgain\n")
	for _, l := range loads {
		for _, twin := range s.twins {
			r := l.results[twin]
			share, gain := "no samples", ""
			if !math.IsNaN(r.inLock) {
				share = fmt.Sprintf("%.0f %%", r.inLock)
			}
			if len(s.twins) == twins && twin == after {
				var gains []float64
				for i, v := range r.perS {
					gains = append(gains, v/l.results[before].perS[i])
				}
				gain = spread(gains, "x")
			}
			printf(table, "%s\t%s\t%s\t%s\t%s\n", l.name, twinNames[twin], spread(r.perS, ""), share, gain)
		}
	}
	if e := table.Flush(); err == nil {
		err = e
	}
	printf(w, `
locked is an array's lock from lookup to end; rcu is lookup and checks in a read section, and the lock
for the operation. Time in locks is the share of the profile's samples in waiting for them, parking
and waking. What else runs on the machine makes the gain smaller: waiting costs nothing while others
have the CPU.

`)
	if s.users == nil {
		printf(w, `Linux, the same with processes on another machine, of 4 CPUs, in 2013: 5.0 million before, 59 %% of the
time in the lock; 9.1 million after, 18 %%. A gain of 1.80x.
`)
	} else {
		printf(w, `Linux, in the lock of 100, 400 and 800 users of a database on another machine, in 2013: 8.7, 21.9 and
84.4 %% of system time before; 8.1, 19.9 and 77.7 %% after.
`)
	}
	printf(w, "\n%s", fastPaths())
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
