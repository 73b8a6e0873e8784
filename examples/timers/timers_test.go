package main

import (
	"bytes"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/quiesce-go/quiesce/internal/commandtest"
)

// benchmark has 16 goroutines make b.N calls of Gettime, each for a timer of its own, whatever
// GOMAXPROCS says. They come for their calls a batch at a time, so that none is left over at the end.
func benchmark(b *testing.B, armed bool) {
	for twin, name := range twinNames {
		b.Run("impl="+name, func(b *testing.B) {
			t := newTable(twin)
			all := newCallers(t, 16, armed)
			defer finish(t, all)
			var left atomic.Int64
			left.Store(int64(b.N))
			run := start(all, func() int {
				return int(min(left.Add(-batch)+batch, batch))
			})
			b.ReportAllocs()
			b.ResetTimer()
			run()
			b.StopTimer()
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds()/1e6, "Mcalls/s")
		})
	}
}

// BenchmarkTimers models the measurement that Linux's timers left their lock by: 16 processes ask how
// long it is until their timers expire, which are not armed.
func BenchmarkTimers(b *testing.B) { benchmark(b, false) }

// BenchmarkArmed is BenchmarkTimers with timers that are armed, as they are where it matters, so that
// each call reads the clock. That takes longer than the lookup, and is the same for both.
func BenchmarkArmed(b *testing.B) { benchmark(b, true) }

func TestRun(t *testing.T) {
	old := runtime.GOMAXPROCS(0)
	var out, errs bytes.Buffer
	code := run([]string{"-goroutines", "3", "-time", "1ms", "-rounds", "2", "-cpus", "1,2"}, &out, &errs)
	if code != 0 || !strings.HasSuffix(errs.String(), "row 4 of 4, round 2 of 2 \n") {
		t.Errorf("exit status %d, progress %q", code, errs.String())
	}
	for _, want := range []string{"3 goroutines", "2 rounds of 1ms", "\nnot armed   1 ", "\nnot armed   2 ", "\narmed       1 ", "\narmed       2 ",
		"23.9x", "membarrier", "Restartable", "CPU number"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in:\n%s", want, out.String())
		}
	}
	if now := runtime.GOMAXPROCS(0); now != old {
		t.Errorf("GOMAXPROCS was %d and is %d", old, now)
	}
}

func TestParse_Defaults(t *testing.T) {
	s, err := parse(nil)
	if err != nil {
		t.Fatal(err)
	}
	if s.goroutines != 16 || s.rounds != 10 || s.cpus[0] != 1 || s.cpus[len(s.cpus)-1] != runtime.NumCPU() {
		t.Errorf("%+v", s)
	}
	if all := time.Duration(2*len(s.cpus)*s.rounds*twins) * s.time; all > 16*time.Second || s.time < time.Millisecond {
		t.Errorf("each measurement takes %v, all %v", s.time, all)
	}
}

func TestSpread(t *testing.T) {
	for _, test := range []struct {
		v    []float64
		want string
	}{
		{[]float64{2}, "2.0x (2.0 to 2.0)"},
		{[]float64{3, 1}, "2.0x (1.0 to 3.0)"},
		{[]float64{9, 1, 2}, "2.0x (1.0 to 9.0)"},
	} {
		if got := spread(test.v, "x"); got != test.want {
			t.Errorf("%v: %q, want %q", test.v, got, test.want)
		}
	}
}

func TestRun_Misuse(t *testing.T) {
	commandtest.Misuse(t, run, usage,
		[]string{"more"}, []string{"-what"}, []string{"-cpus", "0"}, []string{"-cpus", "1,,2"}, []string{"-rounds", "0"}, []string{"-goroutines", "-1"}, []string{"-time", "-1s"})
}

func TestRun_WriteError(t *testing.T) {
	commandtest.WriteError(t, run, "-time", "1ms", "-rounds", "1", "-cpus", "1")
}
