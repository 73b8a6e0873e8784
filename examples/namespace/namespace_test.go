package main

import (
	"bytes"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/quiesce-go/quiesce/examples/namespace/ns"
	"github.com/quiesce-go/quiesce/internal/commandtest"
	"github.com/quiesce-go/quiesce/internal/cputime"
)

// BenchmarkNamespaceExit models children that unshare and exit, a thousand of them, whatever GOMAXPROCS
// says. An operation is the life of one namespace, with its teardown.
func BenchmarkNamespaceExit(b *testing.B) {
	for _, s := range ns.Strategies {
		b.Run("strategy="+s.String(), func(b *testing.B) {
			b.ReportAllocs()
			o := crowd(s, 1000, b.N)
			n := float64(b.N)
			b.ReportMetric(float64(o.elapsed.Nanoseconds())/n, "ns/op")
			b.ReportMetric(float64(o.cpu.Nanoseconds())/n, "cpu-ns/op")
			b.ReportMetric(float64(percentile(o.exits, 50).Nanoseconds()), "p50-exit-ns")
			b.ReportMetric(float64(percentile(o.exits, 99).Nanoseconds()), "p99-exit-ns")
		})
	}
}

func TestCrowd(t *testing.T) {
	for _, s := range ns.Strategies {
		o := crowd(s, 50, 500) // which panics if something is left, or a walk meets what was unmounted
		if len(o.exits) != 500 || percentile(o.exits, 0) < 0 || o.elapsed < 0 || o.cpu < 0 {
			t.Errorf("%v: %+v", s, o)
		}
	}
}

func TestCPUTime(t *testing.T) {
	start := time.Now()
	before := cputime.Used()
	if before == 0 {
		t.Skipf("%s does not tell how much CPU time a program has used", runtime.GOOS)
	}
	for cputime.Used() == before {
		if time.Since(start) > 10*time.Second {
			t.Fatal("no CPU time in 10 s of work")
		}
	}
}

func TestRun(t *testing.T) {
	var out, errs bytes.Buffer
	code := run([]string{"-children", "30", "-exits", "200", "-rounds", "2"}, &out, &errs)
	if code != 0 || !strings.HasSuffix(errs.String(), "round 2 of 2, deferred    \n") {
		t.Errorf("exit status %d, progress %q", code, errs.String())
	}
	for _, want := range []string{"30 children", "200 times", "2 rounds", "\nsynchronize   ", "1.00x (1.00 to 1.00)", "\nshared        ", "\ndeferred      ",
		"0.826 s", "membarrier"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in:\n%s", want, out.String())
		}
	}
}

func TestParse_Defaults(t *testing.T) {
	if s, err := parse(nil); err != nil || s != (settings{1000, 20_000, 10}) {
		t.Errorf("%+v, %v", s, err)
	}
	if s, err := parse([]string{"-children", "5"}); err != nil || s.exits != 100 {
		t.Errorf("%+v, %v", s, err)
	}
}

func TestPercentile(t *testing.T) {
	v := []time.Duration{5, 1, 4, 2, 3}
	for p, want := range map[int]time.Duration{0: 1, 50: 3, 99: 4, 100: 5} {
		if got := percentile(v, p); got != want {
			t.Errorf("percentile %d of %v: %d, want %d", p, v, got, want)
		}
	}
}

func TestSpread(t *testing.T) {
	for _, test := range []struct {
		v    []float64
		want string
	}{
		{[]float64{2}, "2.00x (2.00 to 2.00)"},
		{[]float64{3, 1}, "2.00x (1.00 to 3.00)"},
		{[]float64{9, 1, 2}, "2.00x (1.00 to 9.00)"},
	} {
		if got := spread(test.v); got != test.want {
			t.Errorf("%v: %q, want %q", test.v, got, test.want)
		}
	}
}

func TestRun_Misuse(t *testing.T) {
	commandtest.Misuse(t, run, usage,
		[]string{"more"}, []string{"-what"}, []string{"-children", "0"}, []string{"-exits", "-1"}, []string{"-rounds", "0"}, []string{"-exits", "many"})
}

func TestRun_WriteError(t *testing.T) {
	commandtest.WriteError(t, run, "-children", "2", "-exits", "2", "-rounds", "1")
}
