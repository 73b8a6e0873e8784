package main

import (
	"bytes"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/quiesce-go/quiesce/internal/commandtest"
	"github.com/quiesce-go/quiesce/internal/tier"
)

// TestRun measures a few rows, as short as can be, and looks at all that is written.
func TestRun(t *testing.T) {
	procs := runtime.GOMAXPROCS(0)
	dir := t.TempDir()
	page := filepath.Join(dir, "page.md")
	if err := os.WriteFile(page, []byte("before\n"+beginMark+"\nold\n"+endMark+"\nafter\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	var out, errs bytes.Buffer
	code := run([]string{"-run", "^(Counter|CPU number|Grace periods|Timers)$", "-rounds", "2", "-step", "1us", "-plots", dir, "-raw", filepath.Join(dir, "raw.txt"), "-markdown", page}, &out, &errs)
	if code != 0 {
		t.Fatalf("exit status %d, stderr %s", code, &errs)
	}
	if now := runtime.GOMAXPROCS(0); now != procs {
		t.Errorf("GOMAXPROCS was %d and is %d", procs, now)
	}
	if !regexp.MustCompile(`\d+ rows in \d+ s *\n$`).Match(errs.Bytes()) {
		t.Errorf("progress: %q", errs.String())
	}
	read := func(name string) string {
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	contains := func(what, text string, wanted ...string) {
		for _, want := range wanted {
			if !regexp.MustCompile(want).MatchString(text) {
				t.Errorf("%s: no %q in\n%s", what, want, text)
			}
		}
	}
	contains("table", out.String(), `CounterAdd/counters=1 +1 +percpu\.Counter +[\d.]+ +xsync\.Counter +[\d.]+ +[\d.]+ .*≤ 0\.200`,
		`empty-call .*≤ \+1\.00 ns (yes|NO)`, `\(23\.8x\)`, `p99-ns`, `Others are faster:`, `Not what it must be:`)
	contains("page", read("page.md"), `(?s)^before\n`+beginMark+`\n.*\| Timers/goroutines=16 \| 1 \| rcu \| .*`+endMark+`\nafter\n$`)
	if strings.Contains(read("page.md"), "\nold\n") {
		t.Error("the old text is still on the page")
	}
	raw := read("raw.txt")
	contains("raw text", raw, `(?m)^cpu: .`, `(?m)^BenchmarkCounterAdd/counters=1/impl=percpu\.Counter\t\d+\t[\d.e+-]+ ns/op\t[\d.e+-]+ allocs/op$`)
	for _, line := range strings.Split(strings.TrimSpace(raw), "\n")[5:] {
		if fields := strings.Fields(line); len(fields)%2 != 0 || !strings.HasPrefix(line, "Benchmark") {
			t.Errorf("benchstat does not read %q", line)
		}
	}
	for _, name := range []string{"timers.svg", "grace-periods.svg"} {
		contains(name, read(name), `<svg `, `>locked<|readers<`, `goroutines<|>percentile<`)
	}
}

// TestGroups makes every row once, also those that TestRun does not measure.
func TestGroups(t *testing.T) {
	seen := make(map[string]bool)
	for _, g := range groups {
		for _, r := range g.rows() {
			key := r.name + string(rune('0'+r.cpus))
			if seen[key] || strings.ContainsAny(r.name, " \t") {
				t.Errorf("%s: its name is taken, or benchstat does not read it", r.name)
			}
			seen[key] = true
			if len(r.impls) < 2 {
				t.Errorf("%s: beside nothing", r.name)
			}
			if testing.Short() && strings.Contains(r.name, "1M") {
				continue // which only takes longer
			}
			for i, samples := range (settings{rounds: 1, step: time.Microsecond}).measure(r) {
				if s := samples[0]; s.n < 1 || !(s.ns > 0) || math.IsInf(s.ns, 0) {
					t.Errorf("%s, %s: %+v", r.name, r.impls[i].name, s)
				}
			}
		}
	}
}

// TestStep: operations and times are what they are, and the implementations take turns.
func TestStep(t *testing.T) {
	var order []string
	pass := func(name string, d time.Duration) impl {
		return impl{name: name, open: func() work {
			return work{once: func(time.Duration) sample {
				order = append(order, name)
				return sample{ns: float64(d), n: 1}
			}}
		}}
	}
	r := row{name: "X", cpus: 1, tier: tier.Shared, impls: []impl{pass("a", 10), pass("b", 40)}}
	res := result{"g", r, settings{rounds: 3}.measure(r)}
	if got := strings.Join(order, ""); got != "abbaab" {
		t.Errorf("order %s", got)
	}
	if s := res.ratio(1); s != (spread{0.25, 0.25, 0.25}) {
		t.Errorf("ratio %v", s)
	}

	const sleep = 2 * time.Millisecond
	w := work{goroutines: 3, each: func(int) func(int) {
		return func(n int) { time.Sleep(time.Duration(n) * sleep) }
	}}
	s := step(w, 2, 5*sleep)
	// Each goroutine sleeps an even number of times, at least until 5 have passed.
	if least := float64(sleep) / 3; s.n < 3*2 || s.n%2 != 0 || s.ns < least*0.99 {
		t.Errorf("%d operations of %v ns, want at least %v", s.n, s.ns, least)
	}
}

func TestLine(t *testing.T) {
	samples := func(ns ...float64) (all []sample) {
		for _, v := range ns {
			all = append(all, sample{ns: v})
		}
		return all
	}
	r := result{"g", row{name: "X", impls: []impl{{name: "ours"}, {name: "half", must: 0.5, thread: 0.25}, {name: "call", plus: 1}}},
		[][]sample{samples(3, 1, 2), samples(3, 4, 4), samples(1, 1, 0.9)}}
	lines := linesOf(r)
	if got := strings.Join(lines[0].cells(), ";"); got != "X;0;ours;2.00;half;4.00;0.500;0.250 to 1.00;≤ 0.500 yes;;0.250 (4.0x);" {
		t.Error(got)
	}
	if lines[0].missed() || !lines[1].lost() || lines[1].missed() {
		t.Errorf("%v %v %v", lines[0].missed(), lines[1].lost(), lines[1].missed())
	}
	r.samples[0] = samples(4, 2, 3)
	if !lines[0].missed() || !lines[1].missed() {
		t.Error("medians of 3 ns pass for half of 4 ns, or for 1 ns more than 1")
	}
}

// TestRun_Early: what could not be written in the end is refused before anything is measured.
func TestRun_Early(t *testing.T) {
	dir := t.TempDir()
	page := filepath.Join(dir, "page.md")
	if err := os.WriteFile(page, []byte("text"), 0o666); err != nil {
		t.Fatal(err)
	}
	for want, args := range map[string][]string{
		beginMark: {"-plots", "", "-markdown", page},
		"no-such": {"-plots", filepath.Join(dir, "no-such", "folder")},
	} {
		var out, errs bytes.Buffer
		if code := run(args, &out, &errs); code != 1 || out.Len() != 0 || !strings.Contains(errs.String(), want) || strings.Contains(errs.String(), "row") {
			t.Errorf("%q: exit status %d, stderr %q", args, code, errs.String())
		}
	}
}

// TestDrawLockTime: a workload has its bars only if both profiles had samples.
func TestDrawLockTime(t *testing.T) {
	with := func(share float64) []sample { return []sample{{more: map[string]float64{inLock: share}}} }
	twins := func(name string) row {
		return row{name: name, cpus: mostCPUs(), impls: []impl{{name: "rcu"}, {name: "locked"}}}
	}
	results := []result{
		{"g", twins("Timers/goroutines=16"), [][]sample{with(2), with(90)}},
		{"g", twins("Semop/goroutines=256"), [][]sample{{{}}, with(90)}},
	}
	var b bytes.Buffer
	if err := writeSVG(&b, drawLockTime(results)); err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]bool{">Timers<": true, ">16<": true, ">rcu<": true, ">locked<": true, ">Semop<": false} {
		if got := strings.Contains(b.String(), text); got != want {
			t.Errorf("%s is there: %v", text, got)
		}
	}
	if drawLockTime(results[1:]) != nil {
		t.Error("a plot of nothing")
	}
}

func TestParse(t *testing.T) {
	full, err := parse(nil)
	if err != nil || full.rounds < 10 || full.plots == "" || full.raw == "" {
		t.Errorf("%+v, %v", full, err)
	}
	quick, err := parse([]string{"-quick"})
	if err != nil || quick.rounds >= full.rounds || quick.step >= full.step || quick.plots != "" {
		t.Errorf("%+v, %v", quick, err)
	}
	commandtest.Misuse(t, run, usage,
		[]string{"more"}, []string{"-what"}, []string{"-rounds", "0"}, []string{"-step", "0s"}, []string{"-run", "("}, []string{"-run", "nothing"})
}

func TestRun_WriteError(t *testing.T) {
	commandtest.WriteError(t, run, "-run", "^Callbacks$", "-rounds", "1", "-step", "1us", "-plots", "", "-raw", "")
}
