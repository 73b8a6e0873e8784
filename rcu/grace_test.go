package rcu_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quiesce-go/quiesce/internal/patience"
	"github.com/quiesce-go/quiesce/rcu"
)

// A grace period that waits asks readers to make way when they end their sections, once.
func TestSynchronize_Hurry(t *testing.T) {
	for _, m := range modes {
		t.Run(m.name, func(t *testing.T) { hurry(t, rcu.New(m.opts...)) })
	}
}

func hurry(t *testing.T, d *rcu.Domain) {
	r := d.NewReader()
	for range 3 {
		r.Lock()
		g := d.ReadLock()
		done := async(func() { d.Synchronize(bg) })
		eventually(t, "the Reader is asked", r.Hurried)
		eventually(t, "the Guard is asked", g.Hurried)
		r.Lock()
		r.Unlock()
		mustBlock(t, done, "Synchronize")
		r.Unlock()
		if r.Hurried() {
			t.Error("the Reader is still asked")
		}
		g2 := d.ReadLock()
		if g2.Hurried() {
			t.Error("a new Guard is asked")
		}
		g2.Unlock()
		mustBlock(t, done, "Synchronize")
		g.Unlock()
		mustEnd(t, done, "Synchronize")
		if g := d.ReadLock(); g.Hurried() {
			t.Error("Guards are still asked")
		} else {
			g.Unlock()
		}
	}
}

// A waiter whose context ends hands over to the next, and the grace period goes on where it was.
func TestSynchronize_HandOver(t *testing.T) {
	each(t, func(t *testing.T, k kind, opts ...rcu.Option) {
		d := rcu.New(opts...)
		s := k.lock(d)
		ctx, cancel := context.WithCancel(bg)
		var err error
		first := async(func() { err = d.Synchronize(ctx) })
		eventually(t, "grace period in progress", d.InProgress)
		c := d.Cookie()
		var waiters sync.WaitGroup
		for range 10 {
			waiters.Go(func() { d.Synchronize(bg) })
			waiters.Go(func() { d.SynchronizeExpedited(bg) })
			waiters.Go(func() { d.Wait(bg, c) })
		}
		all := async(waiters.Wait)
		cancel()
		mustEnd(t, first, "a Synchronize whose context ended")
		if !errors.Is(err, context.Canceled) {
			t.Errorf("it returned %v", err)
		}
		mustBlock(t, all, "a waiter")
		s.Unlock()
		mustEnd(t, all, "a waiter")
	})
}

// A stream of sections, of which each begins before the last one ends, holds nothing up. Twin: noflip.
func TestSynchronize_Stream(t *testing.T) {
	for _, m := range modes {
		t.Run(m.name, func(t *testing.T) {
			var d *rcu.Domain
			var rs [2]*rcu.Reader
			var g rcu.Guard
			scans := 0
			hook := func() { // before each look at the readers
				scans++
				next := d.ReadLock()
				g.Unlock()
				g = next
				rs[scans&1].Lock()
				rs[scans&1^1].Unlock()
			}
			d = rcu.New(append([]rcu.Option{rcu.WithHook(rcu.HookScan, hook)}, m.opts...)...)
			rs = [2]*rcu.Reader{d.NewReader(), d.NewReader()}
			for range 5 {
				scans = 0
				g = d.ReadLock()
				rs[0].Lock()
				ctx, cancel := context.WithTimeout(bg, soon/2)
				err := d.Synchronize(ctx)
				cancel()
				g.Unlock()
				rs[scans&1].Unlock()
				if err != nil || scans > 4 {
					t.Fatalf("Synchronize returned %v after %d looks at the readers", err, scans)
				}
			}
		})
	}
}

// Any number of waiters share grace periods. Twin: noshare.
func TestSynchronize_Share(t *testing.T) {
	d := rcu.New()
	g := d.ReadLock()
	first := async(func() { d.Synchronize(bg) })
	eventually(t, "grace period in progress", d.InProgress)
	const n = 1000
	before, arrived := d.Stats().GracePeriods, d.Arrivals()
	var waiters sync.WaitGroup
	for range n {
		waiters.Go(func() { d.Synchronize(bg) })
	}
	eventually(t, "all waiters have arrived", func() bool { return d.Arrivals() == arrived+n })
	g.Unlock()
	mustEnd(t, first, "Synchronize")
	mustEnd(t, async(waiters.Wait), "a waiter")
	if got := d.Stats().GracePeriods - before; got > 3 {
		t.Errorf("%d waiters took %d grace periods", n+1, got)
	}
}

// An ended context is an error even if there is nothing to wait for, and all errors are of the kinds
// that are documented.
func TestSynchronize_Errors(t *testing.T) {
	d := rcu.New()
	ctx, cancel := context.WithCancel(bg)
	cancel()
	for name, f := range map[string]func(context.Context) error{
		"Synchronize": d.Synchronize, "SynchronizeExpedited": d.SynchronizeExpedited, "Barrier": d.Barrier, "Close": d.Close,
		"Wait": func(ctx context.Context) error { return d.Wait(ctx, d.Cookie()) },
	} {
		if err := f(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("%s with an ended context returned %v", name, err)
		}
	}
	if err := rcu.Default().Close(bg); err == nil {
		t.Error("the default Domain was closed")
	}
	must(t, rcu.Default().Synchronize(bg))
}

// What is used wrongly says so.
func TestMisuse(t *testing.T) {
	d, dead := rcu.New(), rcu.New()
	r, closed, nested, late := d.NewReader(), d.NewReader(), d.NewReader(), dead.NewReader()
	closed.Close()
	closed.Close()
	nested.Lock()
	defer nested.Unlock()
	g := dead.ReadLock()
	must(t, dead.Close(bg))
	g.Unlock() // A section may outlive its Domain.
	late.Lock()
	late.Unlock()
	late.Close()
	for want, f := range map[string]func(){
		"rcu: Unlock of a Reader that holds no section":           r.Unlock,
		"rcu: Refresh of a Reader that holds no section":          r.Refresh,
		"rcu: Close of a Reader that holds a section":             nested.Close,
		"rcu: Lock of a closed Reader":                            closed.Lock,
		"rcu: Unlock of a closed Reader":                          closed.Unlock,
		"rcu: Refresh of a closed Reader":                         closed.Refresh,
		"rcu: Refresh of a Reader that was not made by NewReader": new(rcu.Reader).Refresh,
		"rcu: Close of a Reader that was not made by NewReader":   new(rcu.Reader).Close,
		"rcu: Unlock of a zero Guard":                             rcu.Guard{}.Unlock,
		"rcu: ReadLock of a closed Domain":                        func() { dead.ReadLock() },
		"rcu: NewReader of a closed Domain":                       func() { dead.NewReader() },
		"rcu: StartPoll of a closed Domain":                       func() { dead.StartPoll() },
		"rcu: Call of a closed Domain":                            func() { dead.Call(func() {}) },
		"rcu: Go of a closed Domain":                              func() { dead.Go(func() {}) },
		"rcu: CallHead of a closed Domain":                        func() { dead.CallHead(new(rcu.Head), func(*rcu.Head) {}) },
		"rcu: Retire of a closed Domain":                          func() { rcu.Retire(dead, 1, func(int) {}) },
		"rcu: Replace of a closed Domain":                         func() { new(rcu.Pointer[int]).Replace(dead, nil, nil) },
		"rcu: Call with a nil function":                           func() { d.Call(nil) },
		"rcu: CallHead with a nil function":                       func() { d.CallHead(new(rcu.Head), nil) },
		"rcu: Go with a nil function":                             func() { d.Go(nil) },
		"rcu: Retire with a nil function":                         func() { rcu.Retire(d, 1, nil) },
		"rcu: Wait for a Cookie of another Domain":                func() { d.Wait(bg, rcu.New().Cookie()) },
		"rcu: Poll for a Cookie of another Domain":                func() { d.Poll(rcu.New().Cookie()) },
	} {
		if got := panics(f); got != want {
			t.Errorf("panic %q, not %q", got, want)
		}
	}
	for name, f := range map[string]func(){
		"Synchronize": func() { new(rcu.Domain).Synchronize(bg) },
		"Barrier":     func() { new(rcu.Domain).Barrier(bg) },
		"Call":        func() { new(rcu.Domain).Call(func() {}) },
		"TryCall":     func() { new(rcu.Domain).TryCall(func() {}) },
		"Cookie":      func() { new(rcu.Domain).Cookie() },
		"StartPoll":   func() { new(rcu.Domain).StartPoll() },
		"Wait":        func() { new(rcu.Domain).Wait(bg, rcu.Cookie{}) },
		"NewReader":   func() { new(rcu.Domain).NewReader() },
		"Close":       func() { new(rcu.Domain).Close(bg) },
		"Replace":     func() { new(rcu.Pointer[int]).Replace(new(rcu.Domain), nil, func(*int) {}) }, // nothing to retire
	} {
		if got, want := panics(f), "rcu: use of a Domain that was not made by New"; got != want {
			t.Errorf("%s of a zero Domain: panic %q, not %q", name, got, want)
		}
	}
	for name, f := range map[string]func(){ // which have no place for a look
		"ReadLock of a zero Domain": func() { new(rcu.Domain).ReadLock() },
		"Lock of a zero Reader":     func() { new(rcu.Reader).Lock() },
		"Unlock of a zero Reader":   func() { new(rcu.Reader).Unlock() },
	} {
		if panics(f) == "" {
			t.Errorf("no panic in a %s", name)
		}
	}
	// None of that has broken anything.
	r.Lock()
	r.Unlock()
	r.Close()
	must(t, rcu.New().Synchronize(bg))
}

// Refresh lets grace periods end that wait for the section, and not those that come later.
func TestReader_Refresh(t *testing.T) {
	for _, m := range modes {
		t.Run(m.name, func(t *testing.T) {
			d := rcu.New(m.opts...)
			r := d.NewReader()
			r.Lock()
			done := async(func() { d.Synchronize(bg) })
			eventually(t, "grace period in progress", d.InProgress)
			r.Refresh()
			mustEnd(t, done, "Synchronize after Refresh")
			holds(t, d, "the section after Refresh")
			r.Unlock()
			must(t, d.Synchronize(bg))
		})
	}
}

// Readers that come and go use the same records.
func TestReader_Reuse(t *testing.T) {
	d := rcu.New()
	for range 1000 {
		r := d.NewReader()
		r.Lock()
		r.Unlock()
		r.Close()
	}
	if n := d.Records(); n > 1 {
		t.Errorf("%d records for one Reader at a time", n)
	}
	for range 100 {
		d.NewReader()
	}
	rcu.Collect()
	eventually(t, "Readers were collected", func() bool { return d.Stats().Readers == 0 })
}

// The record of a Reader that was dropped in a section is not used again: an Unlock may still be about to
// store to it.
func TestReader_NoReuse(t *testing.T) {
	d := rcu.New(rcu.WithLogger(slog.New(slog.DiscardHandler)))
	d.NewReader().Lock()
	rcu.Collect()
	eventually(t, "the Reader was collected", func() bool { return d.Stats().Readers == 0 })
	must(t, d.Synchronize(bg)) // The section counts as ended.
	r := d.NewReader()
	defer r.Close()
	if n := d.Records(); n != 2 {
		t.Errorf("%d records, want one that is out of use and one that is new", n)
	}
}

// One long section, beside many short ones, costs the waiter little: about one look in a millisecond, at
// nobody but the long one. On a quiet machine that is about 2 ms of a second.
func TestSynchronize_WaitingIsCheap(t *testing.T) {
	var looks atomic.Int64
	d := rcu.New(rcu.WithHook(rcu.HookScan, func() { looks.Add(1) }))
	var rs [1000]*rcu.Reader
	for i := range rs {
		rs[i] = d.NewReader()
		rs[i].Lock()
	}
	done := async(func() { d.Synchronize(bg) })
	eventually(t, "grace period in progress", d.InProgress)
	for _, r := range rs[1:] {
		r.Unlock()
	}
	eventually(t, "looks at one Reader", func() bool { return d.Left() == 1 })
	patience.Until(t, "looks", func() (any, bool) { // it may not sleep for its longest yet
		start, before := time.Now(), looks.Load() // in this order: what comes between them makes the time longer, not the looks more
		time.Sleep(500 * time.Millisecond)
		n, took := looks.Load()-before, time.Since(start)
		return fmt.Sprintf("%d in %v", n, took), n > 0 && n <= took.Milliseconds()+1
	})
	rs[0].Unlock()
	mustEnd(t, done, "Synchronize")
}

// Between Barrier's look for callbacks and its look at the passes, the worker runs them all and ends. Twin:
// onepass.
func TestBarrier_BesidePass(t *testing.T) {
	var d *rcu.Domain
	drained, queued := make(chan bool), make(chan bool)
	var drains, looks atomic.Int64
	d = rcu.New(rcu.WithHook(rcu.HookDrained, func() {
		if drains.Add(1) == 1 {
			drained <- true
			<-queued
		}
	}), rcu.WithHook(rcu.HookBarrier, func() {
		if looks.Add(1) == 1 {
			close(queued)
			eventually(t, "the worker is gone", func() bool { return !d.HasWorker() })
		}
	}))
	d.Call(func() {})
	<-drained
	ran := false
	d.Call(func() { ran = true }) // The worker is about to see it.
	mustEnd(t, async(func() { must(t, d.Barrier(bg)) }), "Barrier")
	if !ran {
		t.Error("Barrier returned before the callback had run")
	}
	must(t, d.Close(bg))
}

// While one pass runs its callbacks, the next has taken in a callback. Barrier waits for both. Twin:
// earlyfinish.
func TestBarrier_BesideTwoPasses(t *testing.T) {
	d := rcu.New()
	started, goOn := make(chan bool), make(chan bool)
	d.Call(func() { // so that one pass takes both
		for range 2 {
			d.Call(func() {
				started <- true
				<-goOn
			})
		}
	})
	<-started
	var ran atomic.Bool
	d.Call(func() {
		time.Sleep(blocked)
		ran.Store(true)
	})
	time.Sleep(time.Millisecond) // so long that the worker looks at what is queued when it can
	goOn <- true
	<-started
	if d.Passes() != 3 {
		t.Error("the worker has not begun another pass")
	}
	barrier := async(func() { d.Barrier(bg) })
	mustBlock(t, barrier, "Barrier")
	goOn <- true
	mustEnd(t, barrier, "Barrier")
	if !ran.Load() {
		t.Error("Barrier returned before the callback had run")
	}
	must(t, d.Close(bg))
}

// Barrier sees a callback whose Call then finds the Domain closed. Twin: lostclose.
func TestBarrier_BesideClose(t *testing.T) {
	var d *rcu.Domain
	queued, closed := make(chan bool), make(chan bool)
	d = rcu.New(rcu.WithHook(rcu.HookQueued, func() {
		close(queued)
		<-closed
	}), rcu.WithHook(rcu.HookBarrier, func() {
		must(t, d.Close(bg))
		close(closed)
	}))
	called := async(func() {
		if err := d.TryCall(func() { t.Error("a callback ran that was not queued") }); !errors.Is(err, rcu.ErrClosed) {
			t.Errorf("TryCall returned %v", err)
		}
	})
	<-queued
	mustEnd(t, async(func() { must(t, d.Barrier(bg)) }), "Barrier")
	mustEnd(t, called, "TryCall")
}

// A CallHead is stalled, its callback runs, the Head is queued again by another that is stalled, too, and then the
// Domain is closed: what the first queued has run, and what the second queued has not. Twin: verdict.
func TestCallHead_BesideClose(t *testing.T) {
	stalled := make(chan chan bool, 1)
	var stall atomic.Bool
	d := rcu.New(rcu.WithHook(rcu.HookQueued, func() {
		if stall.Swap(false) {
			goOn := make(chan bool)
			stalled <- goOn
			<-goOn
		}
	}))
	var h rcu.Head
	ran := 0
	call := func() (goOn chan bool, done <-chan struct{}, msg *string) {
		stall.Store(true)
		msg = new(string)
		done = async(func() { *msg = panics(func() { d.CallHead(&h, func(*rcu.Head) { ran++ }) }) })
		return <-stalled, done, msg
	}
	goOn1, done1, first := call()
	d.Call(func() {}) // which has a worker run both
	must(t, d.Barrier(bg))
	eventually(t, "the worker is gone", func() bool { return !d.HasWorker() })
	goOn2, done2, second := call()
	must(t, d.Close(bg))
	close(goOn1)
	mustEnd(t, done1, "the first CallHead")
	close(goOn2)
	mustEnd(t, done2, "the second CallHead")
	if *first != "" {
		t.Errorf("the first CallHead panicked with %q, as if the Domain had been closed, though its callback ran", *first)
	}
	if *second != "rcu: CallHead of a closed Domain" {
		t.Errorf("the second CallHead panicked with %q", *second)
	}
	if s := d.Stats(); ran != 1 || s.CallbacksPending != 0 || s.CallbacksQueued != 1+1 {
		t.Errorf("%d callbacks of the Head ran, %v", ran, s)
	}
}

// A last callback runs within 5 ms though nothing happens after it. The clock is one that does not mind how busy
// the machine is, and shows what a Domain is slow by that is told to wait for 10 ms: for the first one at least, the
// next may come before the worker has seen that there is no more.
func TestCall_LastSoon(t *testing.T) {
	for _, lazy := range []time.Duration{0, 10 * time.Millisecond} {
		synctest.Test(t, func(t *testing.T) {
			d := rcu.New(rcu.WithLazy(lazy))
			for i := range 100 {
				ran := make(chan time.Time)
				start := time.Now()
				d.Call(func() { ran <- time.Now() })
				if took := (<-ran).Sub(start); i == 0 && took < lazy || took > lazy+5*time.Millisecond {
					t.Fatalf("the last callback ran after %v in a Domain that may wait for %v", took, lazy)
				}
			}
			must(t, d.Close(bg))
		})
	}
}

// The same by the machine's clock, which only a reader of the log minds.
func TestCall_Last(t *testing.T) {
	d := rcu.New()
	var worst time.Duration
	for range 200 {
		var took atomic.Int64
		start := time.Now()
		d.Call(func() { took.Store(int64(time.Since(start))) })
		eventually(t, "the callback ran", func() bool { return took.Load() != 0 })
		worst = max(worst, time.Duration(took.Load()))
	}
	t.Logf("the slowest took %v", worst)
	if d.HasWorker() {
		eventually(t, "the worker ended", func() bool { return !d.HasWorker() })
	}
}

// Callbacks that are queued in a trickle share grace periods.
func TestCall_Trickle(t *testing.T) {
	d := rcu.New()
	const n = 300
	before := time.Now()
	for range n {
		d.Call(func() {})
		for end := time.Now().Add(20 * time.Microsecond); time.Now().Before(end); {
			runtime.Gosched()
		}
	}
	must(t, d.Barrier(bg))
	took := time.Since(before)
	if got, limit := d.Stats().GracePeriods, uint64(took/(200*time.Microsecond))+3; got > limit {
		t.Errorf("%d callbacks in %v took %d grace periods, more than %d", n, took, got, limit)
	}
}

func TestStats(t *testing.T) {
	d := rcu.New()
	g := d.ReadLock()
	for range 3 {
		d.Call(func() {})
	}
	eventually(t, "the worker has taken the callbacks", func() bool { return d.Stats().OldestPending > 0 })
	if s := d.Stats(); s.CallbacksPending != 3 || s.CallbacksRun != 0 {
		t.Errorf("%+v", s)
	}
	g.Unlock()
	must(t, d.Barrier(bg))
	s := d.Stats()
	if s.CallbacksPending != 0 || s.CallbacksRun != 3 || s.CallbacksQueued != 3 || s.GracePeriods == 0 || s.OldestPending != 0 ||
		s.LatencyMax < s.LatencyLast || s.LatencyMean == 0 {
		t.Errorf("%+v", s)
	}
	if rcu.RaceEnabled != (s.ReaderMode == "race") {
		t.Errorf("reader mode %q", s.ReaderMode)
	}
	if m := rcu.New(rcu.WithFences()).Stats().ReaderMode; m != "fenced" && m != "race" {
		t.Errorf("reader mode %q with fences", m)
	}
}
