package idr_test

import (
	"flag"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// A run is some goroutines that go on for a time, or until one returns an error.
type run struct {
	t    *testing.T
	wg   sync.WaitGroup
	over atomic.Bool
}

var hammer = flag.Duration("hammer", 200*time.Millisecond, "how long each run of a hammer test takes")

// newRun returns a run of 200 milliseconds, or of 30 with -short, or what the flag -hammer says.
func newRun(t *testing.T) *run {
	d := *hammer
	if testing.Short() {
		d = min(d, 30*time.Millisecond)
	}
	r := newRunOf(t)
	time.AfterFunc(d, func() { r.over.Store(true) })
	return r
}

// newRunOf returns a run that its goroutines end.
func newRunOf(t *testing.T) *run { return &run{t: t} }

// More reports whether the goroutines are to go on.
func (r *run) More() bool { return !r.over.Load() }

// Go runs f in a goroutine. Its error ends the run, and fails the test.
func (r *run) Go(f func() error) {
	r.wg.Go(func() {
		if err := f(); err != nil {
			r.over.Store(true)
			r.t.Error(err)
		}
	})
}

// Errorf ends the run, and fails the test.
func (r *run) Errorf(format string, args ...any) {
	r.over.Store(true)
	r.t.Errorf(format, args...)
}

// Wait waits for the goroutines, and ends the test if one failed.
func (r *run) Wait() {
	r.t.Helper()
	r.wg.Wait()
	if r.t.Failed() {
		r.t.FailNow()
	}
}

func errorf(format string, args ...any) error { return fmt.Errorf(format, args...) }

// atProcs runs f with GOMAXPROCS at each of procs.
func atProcs(t *testing.T, procs []int, f func(t *testing.T)) {
	for _, n := range procs {
		t.Run(fmt.Sprintf("procs=%d", n), func(t *testing.T) {
			defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(n))
			f(t)
		})
	}
}
