// Command bench measures this module beside other ways to do the same, and what became of the
// workloads that it was made for. Every comparison is made in turns, in one run, so that the ratios
// hold also where the times do not.
//
//	go -C bench run . [-quick] [-run regexp] [-rounds n] [-step d] [-plots dir] [-raw file] [-markdown file]
//
// The table goes to the standard output, and a line that says how far it is to the standard error. It
// is a module of its own, so that nobody who uses quiesce needs its rivals and what draws the plots.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

const usage = `usage: go -C bench run . [-quick] [-run regexp] [-rounds n] [-step d]
                         [-plots dir] [-raw file] [-markdown file]

  -quick          5 rounds of short steps, without the largest tables and the plots: a minute or two
  -run regexp     only groups of rows with such a title
  -rounds n       how often each row is measured, each implementation in turn (20)
  -step d         how long each measurement takes (25ms)
  -plots dir      where the plots go; "" for none (../docs/benchmarks)
  -raw file       where the text for benchstat goes; "" for none (bench.out)
  -markdown file  a page in which to replace what is between the markers

Files are named from the folder bench.
`

var groups = []group{
	{"Counter", "one Add", counters},
	{"Counter by tier", "one Add beside a locked add to a word of the CPU, by what tells its number", counterTiers},
	{"CPU number", "one call", cpuNumbers},
	{"Local", "a lock of this CPU, and its unlock", locals},
	{"Lock and compare", "the lock of this CPU around a comparison", perCPULocks},
	{"RWMutex", "a lock and unlock, of which some are for writing", rwMutexes},
	{"Pool", "a Get and a Put", pools},
	{"Ring", "one record with the time", rings},
	{"Sections", "a section around the load of a pointer and of what it points to", sections},
	{"Grace periods", "one wait for readers that are in sections all the time", gracePeriods},
	{"Callbacks", "queueing and running one, by an updater that has nothing else to do", callbacks},
	{"Ids", "one lookup of an id that is there", finds},
	{"Ids that come and go", "removing one and allocating one", allocs},
	{"Values", "copying a record without writers, by LoadTo; replacing it", seqlocks},
	{"Timers", "one Gettime, of goroutines with a timer each", timers},
	{"Semaphores", "one semop, of 256 threads that give and take 128 semaphores of one array", semaphores},
	{"Semaphores, mixed", "one step of a database: mostly give and take, else a look or a new value, now and then a new array", semMixed},
	{"Namespaces", "one of a thousand exits, each of which has to wait for walks through its mount", namespaces},
	{"Traces", "one event of 32 bits with the time", traces},
}

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

// options is what the flags say.
type options struct {
	settings
	only                 *regexp.Regexp
	plots, raw, markdown string
}

// run carries out the command line args and returns the exit status: 2 for wrong arguments, and 1 when
// writing fails.
func run(args []string, stdout, stderr io.Writer) int {
	o, err := parse(args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		fmt.Fprint(stdout, usage)
		return 0
	case err != nil:
		fmt.Fprintf(stderr, "bench: %v\n\n%s", err, usage)
		return 2
	}
	if err := o.report(stdout, stderr); err != nil {
		fmt.Fprintln(stderr, "bench:", err)
		return 1
	}
	return 0
}

func parse(args []string) (options, error) {
	o := options{settings: settings{rounds: 20, step: 25 * time.Millisecond}, only: regexp.MustCompile("")}
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.BoolVar(&o.quick, "quick", false, "")
	flags.IntVar(&o.rounds, "rounds", o.rounds, "")
	flags.DurationVar(&o.step, "step", o.step, "")
	flags.StringVar(&o.plots, "plots", filepath.Join("..", "docs", "benchmarks"), "")
	flags.StringVar(&o.raw, "raw", "bench.out", "")
	flags.StringVar(&o.markdown, "markdown", "", "")
	flags.Func("run", "", func(s string) (err error) {
		o.only, err = regexp.Compile(s)
		return err
	})
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	given := make(map[string]bool)
	flags.Visit(func(f *flag.Flag) { given[f.Name] = true })
	if o.quick {
		if !given["rounds"] {
			o.rounds = 5
		}
		if !given["step"] {
			o.step = 10 * time.Millisecond
		}
		if !given["plots"] {
			o.plots = ""
		}
	}
	switch {
	case flags.NArg() > 0:
		return o, fmt.Errorf("unexpected argument %q", flags.Arg(0))
	case !slices.ContainsFunc(groups, func(g group) bool { return o.only.MatchString(g.title) }):
		var titles []string
		for _, g := range groups {
			titles = append(titles, g.title)
		}
		return o, fmt.Errorf("%v is no group's title; there are: %s", o.only, strings.Join(titles, "; "))
	case o.rounds < 1 || o.step <= 0:
		return o, errors.New("-rounds and -step have to be above 0")
	}
	return o, nil
}

// report measures, and writes what is asked for.
func (o options) report(stdout, progress io.Writer) error {
	var chosen []group
	for _, g := range groups {
		if o.only.MatchString(g.title) {
			chosen = append(chosen, g)
		}
	}
	// What would fail after minutes is to fail now.
	if o.plots != "" {
		if err := os.Mkdir(o.plots, 0o777); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	if o.markdown != "" {
		if _, _, err := aroundMarks(o.markdown); err != nil {
			return err
		}
	}
	m := thisMachine()
	results := o.run(chosen, progress)
	m.after = load()

	if err := writeTable(stdout, m, o.settings, chosen, results); err != nil {
		return err
	}
	if o.plots != "" {
		if err := drawAll(o.plots, results); err != nil {
			return err
		}
	}
	if o.raw != "" {
		if err := writeFile(o.raw, func(w io.Writer) error { return writeRaw(w, m, results) }); err != nil {
			return err
		}
	}
	if o.markdown != "" {
		return replaceBetween(o.markdown, func(w io.Writer) error {
			return writeMarkdown(w, m, o.settings, chosen, results)
		})
	}
	return nil
}

func writeFile(name string, write func(io.Writer) error) error {
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	if err := write(f); err != nil {
		f.Close()
		return err
	}
	return f.Close()
}
