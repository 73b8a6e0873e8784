package rcutest_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/quiesce-go/quiesce/internal/patience"
	"github.com/quiesce-go/quiesce/internal/storm"
	"github.com/quiesce-go/quiesce/rcu"
	"github.com/quiesce-go/quiesce/rcu/rcutest"
)

func size(d time.Duration) time.Duration {
	if testing.Short() {
		return d / 5
	}
	return d
}

func TestRun(t *testing.T) {
	for _, c := range []struct {
		name string
		cfg  rcutest.Config
	}{
		{"both", rcutest.Config{}},
		{"readers", rcutest.Config{Kinds: rcutest.Readers}},
		{"guards", rcutest.Config{Kinds: rcutest.Guards}},
		{"storm", rcutest.Config{Storm: true}},
		{"many", rcutest.Config{Readers: 32, Updaters: 16}},
		{"bounded", rcutest.Config{Options: []rcu.Option{rcu.WithMaxPending(8)}}},
		{"lazy", rcutest.Config{Options: []rcu.Option{rcu.WithLazy(20 * time.Millisecond)}}},
		{"debug", rcutest.Config{Options: []rcu.Option{rcu.WithDebug()}}},
		{"awake", rcutest.Config{LongestSleep: -1, Readers: 1, Updaters: 1}},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.cfg.Duration = size(300 * time.Millisecond)
			patience.Until(t, "it does what it is for", func() (any, bool) {
				r := rcutest.Test(t, c.cfg)
				if r.Seed == 0 || r.Elapsed < c.cfg.Duration || r.Updates != r.Freed {
					t.Errorf("seed %d, %v, %d of %d freed", r.Seed, r.Elapsed, r.Freed, r.Updates)
				}
				return r, r.Sections > 0 && r.Updates > 0 && r.Ages[0] > 0 && r.Stats.GracePeriods > 0
			})
		})
	}
}

// The harsher storm of the module's own tests, whose signals come from outside.
func TestRun_Storm(t *testing.T) {
	stop := storm.Start(t)
	rcutest.Test(t, rcutest.Config{Duration: size(300 * time.Millisecond)})
	stop()
}

// A seed chooses the same operations again.
func TestRun_Seed(t *testing.T) {
	cfg := rcutest.Config{Updates: 30, Seed: 7, LongestSleep: -1}
	first, again := rcutest.Test(t, cfg), rcutest.Test(t, cfg)
	if first.Seed != 7 || again.Seed != 7 || !maps.Equal(first.Waits, again.Waits) {
		t.Errorf("seed 7 chose\n%v and then\n%v", first.Waits, again.Waits)
	}
	cfg.Seed = 8
	if other := rcutest.Test(t, cfg); maps.Equal(first.Waits, other.Waits) {
		t.Errorf("seeds 7 and 8 both chose %v", other.Waits)
	}
	for how, n := range first.Waits {
		if n == 0 {
			t.Errorf("no %s in 90 updates", how)
		}
	}
}

// A table has a mistake.
type table struct {
	mistake string
	slots   [4]rcu.Pointer[rcutest.Object]
	stale   rcu.Pointer[rcutest.Object]
	n       atomic.Int64
}

func (s *table) Exchange(rng *rand.Rand, fresh *rcutest.Object) *rcutest.Object {
	old := s.slots[rng.IntN(len(s.slots))].Swap(fresh)
	switch s.mistake {
	case "findable":
		if s.n.Add(1)%10 == 0 {
			s.stale.Store(old)
		}
	case "twice":
		if old != nil && s.n.Add(1)%10 == 0 {
			return s.stale.Swap(old)
		}
		s.stale.Store(old)
	}
	return old
}

func (s *table) Find(rng *rand.Rand, visit func(*rcutest.Object)) {
	for i := range s.slots {
		if o := s.slots[i].Load(); o != nil {
			visit(o)
		}
	}
	if o := s.stale.Load(); o != nil && s.mistake == "findable" {
		visit(o)
	}
	if s.mistake == "unready" && s.n.Add(1) == 1000 {
		visit(new(rcutest.Object))
	}
}

// A torture that cannot fail proves nothing. (That it finds mistakes of the engine is shown by the tests of
// cmd/quiesce.)
func TestRun_Mistakes(t *testing.T) {
	if raceEnabled {
		t.Skip("the mistakes are data races, which the race detector reports")
	}
	before := runtime.NumGoroutine()
	for mistake, want := range map[string][]string{
		"":         nil,
		"findable": {"grace periods ago", "that is not ready", "changed from"},
		"twice":    {"taken out already", "ended twice", "grace periods ago", "that is not ready", "changed from"},
		"unready":  {"that is not ready"},
	} {
		long := time.Minute
		if mistake == "" {
			long = size(200 * time.Millisecond)
		}
		r, err := rcutest.Run(t.Context(), rcutest.Config{Structure: &table{mistake: mistake}, Duration: long})
		found := len(want) == 0 && err == nil
		for _, want := range want {
			found = found || err != nil && strings.Contains(strings.Join(r.Failures, "\n"), want)
		}
		if !found {
			t.Errorf("mistake %q: %v\n%v", mistake, err, r)
		}
		if err != nil && !strings.Contains(err.Error(), fmt.Sprintf("(seed %d)", r.Seed)) {
			t.Errorf("no seed in %q", err)
		}
	}
	for end := time.Now().Add(10 * time.Second); runtime.NumGoroutine() > before; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%d goroutines, %d before", runtime.NumGoroutine(), before)
		}
	}
}

// A grace period does not end, for somebody else holds a section.
func TestRun_Stuck(t *testing.T) {
	d := rcu.New()
	g := d.ReadLock()
	r, err := rcutest.Run(t.Context(), rcutest.Config{Domain: d, Duration: -1, Patience: 200 * time.Millisecond})
	if err == nil || !strings.Contains(err.Error(), "is stuck for 200ms in") {
		t.Errorf("%v\n%v", err, r)
	}
	g.Unlock()
	if err := d.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

// A Domain that is given is left as it was.
func TestRun_Domain(t *testing.T) {
	d := rcu.New()
	own := d.NewReader()
	defer own.Close()
	rcutest.Test(t, rcutest.Config{Domain: d, Updates: 20})
	if err := d.Synchronize(t.Context()); err != nil {
		t.Error(err)
	}
	if s := d.Stats(); s.CallbacksPending != 0 {
		t.Errorf("%d callbacks are pending", s.CallbacksPending)
	}
	if err := d.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestRun_Context(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	seen := false
	cfg := rcutest.Config{Duration: time.Hour, Progress: func(r rcutest.Report) {
		seen = r.Sections > 0
		cancel()
	}}
	if r, err := rcutest.Run(ctx, cfg); !errors.Is(err, context.Canceled) || r.Updates != r.Freed || !seen {
		t.Errorf("%v\n%v", err, r)
	}
	cfg.Duration = -1 // what is to end with its context has not ended early
	if r, err := rcutest.Run(ctx, cfg); err != nil {
		t.Errorf("%v\n%v", err, r)
	}
}

func TestRun_Misuse(t *testing.T) {
	for _, cfg := range []rcutest.Config{{Kinds: 4}, {Readers: -1}, {Updaters: -1}, {Updates: -1}, {Patience: -1},
		{Domain: rcu.Default(), Options: []rcu.Option{rcu.WithDebug()}}} {
		func() {
			defer func() {
				if msg, _ := recover().(string); !strings.HasPrefix(msg, "rcutest: Config with") {
					t.Errorf("%+v: panic %q", cfg, msg)
				}
			}()
			rcutest.Run(t.Context(), cfg)
		}()
	}
}

// A fakeTB is a test that may fail.
type fakeTB struct {
	ctx          context.Context
	logs, errors []string
}

func (f *fakeTB) Helper()                  {}
func (f *fakeTB) Context() context.Context { return f.ctx }
func (f *fakeTB) Logf(format string, args ...any) {
	f.logs = append(f.logs, fmt.Sprintf(format, args...))
}
func (f *fakeTB) Errorf(format string, args ...any) {
	f.errors = append(f.errors, fmt.Sprintf(format, args...))
}

func TestTest(t *testing.T) {
	var _ rcutest.TB = testing.TB(nil)
	f := &fakeTB{ctx: t.Context()}
	rcutest.Test(f, rcutest.Config{Structure: &table{mistake: "unready"}, Duration: time.Minute})
	if len(f.errors) != 1 || len(f.logs) != 1 || !strings.Contains(f.logs[0], "FAILED: a section found an object") {
		t.Errorf("errors %q, logs %q", f.errors, f.logs)
	}
}
