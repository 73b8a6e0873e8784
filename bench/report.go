package main

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"runtime"
	"slices"
	"strings"
	"text/tabwriter"
)

// A line is a row of ours beside one of the others.
type line struct {
	result
	other int // index of the impl
}

func linesOf(r result) (all []line) {
	for i := 1; i < len(r.impls); i++ {
		all = append(all, line{r, i})
	}
	return all
}

var head = []string{"work", "CPUs", "ours", "ns", "beside", "ns", "ratio", "least to most", "must", "goal", "thread", "allocations"}

// cells are what a line says, under head.
func (l line) cells() []string {
	im := l.impls[l.other]
	ratio := l.ratio(l.other)
	return []string{
		l.name, fmt.Sprint(l.cpus),
		l.impls[0].name, number(l.times(0).median),
		im.name, number(l.times(l.other).median),
		number(ratio.median), number(ratio.least) + " to " + number(ratio.most),
		l.must(), atMost(im.goal), thread(im.thread), l.allocs(),
	}
}

// must says what was asked for and whether it is so.
func (l line) must() string {
	im := l.impls[l.other]
	asked := atMost(im.must)
	if im.plus > 0 {
		asked = "≤ +" + number(im.plus) + " ns"
	}
	switch {
	case asked == "":
		return ""
	case l.missed():
		return asked + " **no**"
	}
	return asked + " yes"
}

// missed reports whether our median is not what it had to be.
func (l line) missed() bool {
	im := l.impls[l.other]
	return im.must > 0 && l.ratio(l.other).median > im.must ||
		im.plus > 0 && l.times(0).median > l.times(l.other).median+im.plus
}

// lost reports whether the other one is faster, in most rounds.
func (l line) lost() bool { return l.ratio(l.other).median > 1 }

// allocs is how many allocations an operation makes, ours and the other's.
func (l line) allocs() string {
	ours, others := l.allocations(0), l.allocations(l.other)
	if ours < 0.01 && others < 0.01 {
		return ""
	}
	return fmt.Sprintf("%.2g, %.2g", ours, others)
}

func (r result) allocations(i int) float64 {
	var v []float64
	for _, s := range r.samples[i] {
		v = append(v, s.allocs)
	}
	return spreadOf(v).median
}

func atMost(ratio float64) string {
	if ratio == 0 {
		return ""
	}
	return "≤ " + number(ratio)
}

// thread is a ratio that others reported, with the gain, which is how they said it.
func thread(ratio float64) string {
	if ratio == 0 {
		return ""
	}
	return fmt.Sprintf("%s (%.1fx)", number(ratio), 1/ratio)
}

// number has three digits.
func number(v float64) string {
	switch {
	case v >= 100:
		return fmt.Sprintf("%.0f", v)
	case v >= 10:
		return fmt.Sprintf("%.1f", v)
	case v >= 1:
		return fmt.Sprintf("%.2f", v)
	}
	return fmt.Sprintf("%.3f", v)
}

// asWhat says what the columns are.
const asWhat = `Times are nanoseconds for one operation, all CPUs together: with two CPUs, half is perfect scaling. Each is the median
of %d rounds of %v (four times that for timers and semaphores), the implementations of a row in turns. A ratio is our
time by the other's in the same round: below 1 we are faster. must and goal are what it was to be, thread is what the
kernel developers reported for the same change on their machines, as a ratio and as the gain. Allocations are ours and
the other's, for each operation, where there are any.
`

// writeTable writes everything for a person at a terminal.
func writeTable(w io.Writer, m machine, s settings, groups []group, results []result) error {
	out := &errWriter{w: w}
	m.write(out, "")
	fmt.Fprintf(out, "\n"+asWhat, s.rounds, s.step)
	for _, g := range groups {
		fmt.Fprintf(out, "\n%s: %s\n\n", g.title, g.note)
		table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
		fmt.Fprintln(table, strings.Join(head, "\t"))
		for _, r := range results {
			if r.group != g.title {
				continue
			}
			for _, l := range linesOf(r) {
				fmt.Fprintln(table, strings.ReplaceAll(strings.Join(l.cells(), "\t"), "**no**", "NO"))
			}
		}
		table.Flush()
		writePercentiles(out, g, results, "\t")
	}
	writeLosses(out, results)
	return out.err
}

// writeMarkdown writes the same for a page.
func writeMarkdown(w io.Writer, m machine, s settings, groups []group, results []result) error {
	out := &errWriter{w: w}
	m.write(out, "- ")
	fmt.Fprintf(out, "\n"+asWhat, s.rounds, s.step)
	for _, g := range groups {
		fmt.Fprintf(out, "\n### %s: %s\n\n", g.title, g.note)
		fmt.Fprintf(out, "| %s |\n|%s\n", strings.Join(head, " | "), strings.Repeat("---|", len(head)))
		for _, r := range results {
			if r.group != g.title {
				continue
			}
			for _, l := range linesOf(r) {
				fmt.Fprintf(out, "| %s |\n", strings.Join(l.cells(), " | "))
			}
		}
		writePercentiles(out, g, results, " | ")
	}
	fmt.Fprintf(out, "\n### Where others are faster, and what was missed\n")
	writeLosses(out, results)
	return out.err
}

// writePercentiles writes a table of the other figures that the samples of a group have, if any: the
// medians of the rounds.
func writePercentiles(w io.Writer, g group, results []result, between string) {
	var units []string
	rows := [][]string{}
	for _, r := range results {
		if r.group != g.title {
			continue
		}
		for i, im := range r.impls {
			more := r.more(i)
			if len(more) == 0 {
				continue
			}
			if units == nil {
				units = slices.SortedFunc(maps.Keys(more), func(a, b string) int {
					return cmp.Or(slices.Index(percentileNames, a)-slices.Index(percentileNames, b), cmp.Compare(a, b))
				})
			}
			cells := []string{r.name, fmt.Sprint(r.cpus), im.name}
			for _, u := range units {
				cells = append(cells, number(more[u]))
			}
			rows = append(rows, cells)
		}
	}
	if units == nil {
		return
	}
	fmt.Fprintln(w)
	head := append([]string{"work", "CPUs", "implementation"}, units...)
	if between == "\t" {
		table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
		for _, cells := range slices.Insert(rows, 0, head) {
			fmt.Fprintln(table, strings.Join(cells, between))
		}
		table.Flush()
		return
	}
	fmt.Fprintf(w, "| %s |\n|%s\n", strings.Join(head, between), strings.Repeat("---|", len(head)))
	for _, cells := range rows {
		fmt.Fprintf(w, "| %s |\n", strings.Join(cells, between))
	}
}

// more has the medians of the other figures of impl i.
func (r result) more(i int) map[string]float64 {
	all := make(map[string][]float64)
	for _, s := range r.samples[i] {
		for unit, v := range s.more {
			all[unit] = append(all[unit], v)
		}
	}
	medians := make(map[string]float64)
	for unit, v := range all {
		medians[unit] = spreadOf(v).median
	}
	return medians
}

// writeLosses names the lines in which the other one is faster, and those in which we are not as fast as
// we have to be.
func writeLosses(w io.Writer, results []result) {
	var lost, missed []string
	for _, r := range results {
		for _, l := range linesOf(r) {
			im := r.impls[l.other]
			what := fmt.Sprintf("- %s on %d: %s is %s times %s (%s to %s)", r.name, r.cpus, r.impls[0].name,
				number(l.ratio(l.other).median), im.name, number(l.ratio(l.other).least), number(l.ratio(l.other).most))
			if l.lost() && !im.own {
				lost = append(lost, what)
			}
			if l.missed() {
				missed = append(missed, what+", must be "+strings.ReplaceAll(l.must(), " **no**", ""))
			}
		}
	}
	for _, list := range []struct {
		title string
		lines []string
	}{{"Others are faster:", lost}, {"Not what it must be:", missed}} {
		if len(list.lines) == 0 {
			list.lines = []string{"- nowhere"}
		}
		fmt.Fprintf(w, "\n%s\n\n%s\n", list.title, strings.Join(list.lines, "\n"))
	}
}

// writeRaw writes each step as the line of a benchmark, in the form that benchstat reads.
func writeRaw(w io.Writer, m machine, results []result) error {
	out := &errWriter{w: w}
	fmt.Fprintf(out, "goos: %s\ngoarch: %s\npkg: github.com/quiesce-go/quiesce/bench\ncpu: %s\ncommit: %s\n", runtime.GOOS, runtime.GOARCH, m.cpu, m.commit)
	for _, r := range results {
		for i, im := range r.impls {
			cpus := ""
			if r.cpus > 1 {
				cpus = fmt.Sprintf("-%d", r.cpus)
			}
			for _, s := range r.samples[i] {
				fmt.Fprintf(out, "Benchmark%s/impl=%s%s\t%d\t%.4g ns/op\t%.3g allocs/op", r.name, im.name, cpus, s.n, s.ns, s.allocs)
				for _, unit := range slices.Sorted(maps.Keys(s.more)) {
					fmt.Fprintf(out, "\t%.4g %s", s.more[unit], unit)
				}
				fmt.Fprintln(out)
			}
		}
	}
	return out.err
}

// What replaceBetween replaces is between these lines.
const (
	beginMark = "<!-- bench:begin, written by the command above -->"
	endMark   = "<!-- bench:end -->"
)

// aroundMarks returns what a page has before the first mark and after the second.
func aroundMarks(page string) (before, after []byte, err error) {
	text, err := os.ReadFile(page)
	if err != nil {
		return nil, nil, err
	}
	before, rest, ok := bytes.Cut(text, []byte(beginMark))
	_, after, ok2 := bytes.Cut(rest, []byte(endMark))
	if !ok || !ok2 {
		return nil, nil, errors.New(page + ": no " + beginMark + " with " + endMark + " after it")
	}
	return before, after, nil
}

// replaceBetween replaces what is between the marks of a page.
func replaceBetween(page string, write func(io.Writer) error) error {
	before, after, err := aroundMarks(page)
	if err != nil {
		return err
	}
	return writeFile(page, func(w io.Writer) error {
		out := &errWriter{w: w}
		fmt.Fprintf(out, "%s%s\n\n", before, beginMark)
		if err := write(out); err != nil {
			return err
		}
		fmt.Fprintf(out, "\n%s%s", endMark, after)
		return out.err
	})
}

// An errWriter remembers the first error and writes nothing after it.
type errWriter struct {
	w   io.Writer
	err error
}

func (e *errWriter) Write(p []byte) (int, error) {
	if e.err != nil {
		return 0, e.err
	}
	var n int
	n, e.err = e.w.Write(p)
	return n, e.err
}
