package rcutest

import (
	"strings"
	"testing"
	"time"

	"github.com/quiesce-go/quiesce/rcu"
)

func newTorture() *torture {
	return &torture{cfg: Config{Patience: 100 * time.Millisecond}, d: rcu.New(), stopped: make(chan struct{})}
}

func (t *torture) mustHaveFailed(tt *testing.T, want string) {
	tt.Helper()
	if !strings.Contains(strings.Join(t.failures, "\n"), want) {
		tt.Errorf("failures %q, want %q", t.failures, want)
	}
	if !t.stop.Load() {
		tt.Error("a failure does not end it")
	}
}

// An engine that runs a callback twice is not at hand.
func TestPass_Twice(t *testing.T) {
	tort := newTorture()
	u := &updater{worker: worker{t: tort}}
	o := &Object{plan: plan{depth: 1}}
	o.age.Store(1)
	u.pass(o, nil)
	if tort.failed() {
		t.Fatal(tort.failures)
	}
	o.stage = 0
	u.pass(o, nil)
	tort.mustHaveFailed(t, "ended twice")
}

// Nor is one that loses them.
func TestSettle_Lost(t *testing.T) {
	tort := newTorture()
	tort.retired.Store(1)
	tort.settle(nil)
	tort.mustHaveFailed(t, "1 objects were taken out and never freed")
}

// Nor is one that leaves its worker.
func TestSettle_Left(t *testing.T) {
	tort := newTorture()
	before := engineGoroutines()
	over := make(chan struct{})
	other := rcu.New()
	other.Call(func() { <-over })
	tort.settle(before)
	close(over)
	tort.mustHaveFailed(t, "a goroutine is left")
}
