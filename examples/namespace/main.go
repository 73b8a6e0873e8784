// Command namespace shows what it costs to wait for readers on the way out: it has a thousand children
// leave a namespace of their own each, again and again, where a mount has to go that takes a grace period.
// Three ways to wait are measured in turns. The package that it measures is in the folder ns, and is of use
// elsewhere.
//
//	go run ./examples/namespace [-children 1000] [-exits n] [-rounds 10]
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
	"text/tabwriter"
	"time"

	"github.com/quiesce-go/quiesce/asm"
	"github.com/quiesce-go/quiesce/examples/namespace/ns"
)

const usage = `usage: namespace [-children n] [-exits n] [-rounds n]

  -children n   how many create namespaces and exit, at once (1000)
  -exits n      how often all of them do so in a round (20 for each child)
  -rounds n     how often each way is measured (10)
`

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

// settings is what the flags say.
type settings struct{ children, exits, rounds int }

// run carries out the command line args and returns the exit status.
func run(args []string, stdout, stderr io.Writer) int {
	s, err := parse(args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		fmt.Fprint(stdout, usage)
		return 0
	case err != nil:
		fmt.Fprintf(stderr, "namespace: %v\n\n%s", err, usage)
		return 2
	}
	if err := s.report(stdout, s.measure(stderr)); err != nil {
		fmt.Fprintln(stderr, "namespace:", err)
		return 1
	}
	return 0
}

func parse(args []string) (settings, error) {
	s := settings{children: 1000, rounds: 10}
	flags := flag.NewFlagSet("namespace", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.IntVar(&s.children, "children", s.children, "")
	flags.IntVar(&s.exits, "exits", 0, "")
	flags.IntVar(&s.rounds, "rounds", s.rounds, "")
	if err := flags.Parse(args); err != nil {
		return s, err
	}
	switch {
	case flags.NArg() > 0:
		return s, fmt.Errorf("unexpected argument %q", flags.Arg(0))
	case s.children < 1 || s.rounds < 1 || s.exits < 0:
		return s, errors.New("-children and -rounds have to be above 0, and -exits not below")
	}
	if s.exits == 0 {
		s.exits = 20 * s.children
	}
	return s, nil
}

// A row is what was measured of one strategy, a number for each round. The last two say by how much the
// first strategy took more in the same round.
type row struct {
	elapsed, cpu         []float64 // milliseconds
	p50, p99             []float64 // microseconds
	elapsedGain, cpuGain []float64
}

// measure makes all measurements, and tells progress how far it is.
func (s settings) measure(progress io.Writer) map[ns.Strategy]*row {
	defer fmt.Fprintln(progress)
	rows := map[ns.Strategy]*row{}
	for _, strategy := range ns.Strategies {
		rows[strategy] = new(row)
	}
	for round := range s.rounds {
		var first outcome
		for i, strategy := range ns.Strategies {
			fmt.Fprintf(progress, "\rround %d of %d, %-12v", round+1, s.rounds, strategy)
			o := crowd(strategy, s.children, s.exits)
			if i == 0 {
				first = o
			}
			rows[strategy].add(o, first)
		}
	}
	return rows
}

func (r *row) add(o, first outcome) {
	r.elapsed = append(r.elapsed, o.elapsed.Seconds()*1e3)
	r.cpu = append(r.cpu, o.cpu.Seconds()*1e3)
	r.p50 = append(r.p50, percentile(o.exits, 50).Seconds()*1e6)
	r.p99 = append(r.p99, percentile(o.exits, 99).Seconds()*1e6)
	r.elapsedGain = append(r.elapsedGain, first.elapsed.Seconds()/o.elapsed.Seconds())
	if o.cpu > 0 { // not measured, or less than the system counts in
		r.cpuGain = append(r.cpuGain, first.cpu.Seconds()/o.cpu.Seconds())
	}
}

// percentile returns the value that p percent of v do not exceed.
func percentile(v []time.Duration, p int) time.Duration {
	v = slices.Sorted(slices.Values(v))
	return v[(len(v)-1)*p/100]
}

// median returns the median of v, and the mean of the two in the middle if there are two.
func median(v []float64) float64 {
	v = slices.Sorted(slices.Values(v))
	n := len(v)
	return (v[(n-1)/2] + v[n/2]) / 2
}

// report writes the table and what has to be known with it.
func (s settings) report(w io.Writer, rows map[ns.Strategy]*row) error {
	var err error
	printf := func(w io.Writer, format string, args ...any) {
		if _, e := fmt.Fprintf(w, format, args...); err == nil {
			err = e
		}
	}
	printf(w, `%d children on %d CPUs: %d times, one of them creates a namespace, uses it, and exits.
Medians of %d rounds. Elapsed is until nothing is left of any namespace; CPU is what the program used
until then; an exit is what the child waits for.

`, s.children, runtime.GOMAXPROCS(0), s.exits, s.rounds)

	table := tabwriter.NewWriter(w, 0, 0, 3, ' ', 0)
	printf(table, "strategy\telapsed\tCPU\texit p50\texit p99\telapsed, gain\tCPU, gain\n")
	for _, strategy := range ns.Strategies {
		r := rows[strategy]
		cpu, gain := "not known", "not known"
		if len(r.cpuGain) > 0 {
			cpu, gain = fmt.Sprintf("%.1f ms", median(r.cpu)), spread(r.cpuGain)
		}
		printf(table, "%v\t%.1f ms\t%s\t%.2f us\t%.2f us\t%s\t%s\n", strategy,
			median(r.elapsed), cpu, median(r.p50), median(r.p99), spread(r.elapsedGain), gain)
	}
	if e := table.Flush(); err == nil {
		err = e
	}

	fence := "yes"
	if e := asm.Membarrier(); e != nil {
		fence = "no, " + e.Error()
	}
	printf(w, `
synchronize: each exit waits for a grace period of its own, one exit after the other.
shared:      each exit waits, and all that wait at the time share a grace period.
deferred:    no exit waits. One goroutine tears down what was left by the time of each grace period.

Linux, 1000 children that unshare and exit, on another machine:
unmounted on exit, 0.826 s and 2.65 s of CPU; handed to a work queue, 0.667 s and 4.25 s of CPU.

Read sections without fences (membarrier): %s
`, fence)
	return err
}

// spread is the median of v with its extremes.
func spread(v []float64) string {
	return fmt.Sprintf("%.2fx (%.2f to %.2f)", median(v), slices.Min(v), slices.Max(v))
}
