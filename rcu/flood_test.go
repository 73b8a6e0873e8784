package rcu_test

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quiesce-go/quiesce/asm"
	"github.com/quiesce-go/quiesce/internal/patience"
	"github.com/quiesce-go/quiesce/rcu"
)

// TryCall goes up to the limit and no further, and Call goes past it. Twin: nolimit.
func TestTryCall_Busy(t *testing.T) {
	for _, n := range []int{1, 2, 10, 1000} {
		d := rcu.New(rcu.WithMaxPending(n))
		g := d.ReadLock()
		var ran, queued atomic.Int64
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				for range n {
					if d.TryCall(func() { ran.Add(1) }) == nil {
						queued.Add(1)
					}
				}
			})
		}
		wg.Wait()
		for queued.Load() <= 5*int64(n) && d.TryCall(func() { ran.Add(1) }) == nil { // All may have been refused the last place.
			queued.Add(1)
		}
		if got := queued.Load(); got != int64(n) {
			t.Fatalf("%d callbacks with a limit of %d", got, n)
		}
		err := d.TryCall(func() { t.Error("a refused callback ran") })
		if !errors.Is(err, rcu.ErrBusy) || !strings.Contains(err.Error(), "TryCall") {
			t.Errorf("TryCall at the limit of %d returned %v", n, err)
		}
		if s := d.Stats(); s.CallbacksPending != uint64(n) || s.CallbacksQueued != uint64(n) {
			t.Errorf("limit %d: %v", n, s)
		}
		// A Call does not fail, and ends though a section is open.
		mustEnd(t, async(func() { d.Call(func() { ran.Add(1) }) }), "Call past the limit")
		g.Unlock()
		must(t, d.Barrier(bg))
		must(t, d.TryCall(func() { ran.Add(1) }))
		must(t, d.Close(bg))
		if got := ran.Load(); got != int64(n)+2 {
			t.Errorf("%d of %d callbacks ran", got, n+2)
		}
		if err := d.TryCall(func() {}); !errors.Is(err, rcu.ErrClosed) {
			t.Errorf("TryCall of a closed Domain returned %v", err)
		}
	}
}

// Past the limit a Call takes longer and longer, up to a second. A callback is not slowed, and
// whoever is goes on as soon as callbacks have run. Twin: nolimit.
func TestCall_Slowed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := rcu.New(rcu.WithMaxPending(8))
		g := d.ReadLock()
		took := func() time.Duration {
			start := time.Now()
			d.Call(func() {})
			return time.Since(start)
		}
		for i := range 8 {
			if got := took(); got != 0 {
				t.Errorf("the Call of number %d took %v", i, got)
			}
		}
		if got := took(); got < 10*time.Millisecond || got > 20*time.Millisecond {
			t.Errorf("the first Call past the limit took %v", got)
		}
		g.Unlock()
		must(t, d.Barrier(bg))
		ran := 0
		called := make(chan bool)
		d.Call(func() {
			g = d.ReadLock()
			start := time.Now()
			for range 1000 {
				d.Call(func() { ran++ })
			}
			if got := time.Since(start); got != 0 {
				t.Errorf("1000 Calls in a callback took %v", got)
			}
			close(called)
		})
		<-called
		if got := took(); got != time.Second {
			t.Errorf("a Call far past the limit took %v", got)
		}
		time.AfterFunc(100*time.Millisecond, g.Unlock)
		if got := took(); got > 200*time.Millisecond {
			t.Errorf("a Call took %v, though callbacks could run after 100 ms", got)
		}
		must(t, d.Close(bg))
		if ran != 1000 {
			t.Errorf("%d of 1000 callbacks ran", ran)
		}
	})
}

// A grace period that is slow to look becomes quick when callbacks pile up. Twin: noexpedite.
func TestCall_Expedites(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var looks atomic.Int64
		d := rcu.New(rcu.WithHook(rcu.HookScan, func() { looks.Add(1) }))
		g := d.ReadLock()
		d.Call(func() {})
		looksIn := func(t time.Duration) int64 {
			before := looks.Load()
			time.Sleep(t)
			return looks.Load() - before
		}
		time.Sleep(time.Second)
		if n := looksIn(time.Second); n > 1001 || n == 0 {
			t.Errorf("%d looks in a second with one callback", n)
		}
		for range 10_001 {
			d.Call(func() {})
		}
		time.Sleep(10 * time.Millisecond)
		if n := looksIn(100 * time.Millisecond); n < 1000 {
			t.Errorf("%d looks in a tenth of a second with many callbacks", n)
		}
		g.Unlock()
		must(t, d.Close(bg))
	})
}

// A long batch of callbacks holds up no grace period: what is asked for, or queued, while it runs, gets its
// own meanwhile. Twin: starve.
func TestCall_NotStarved(t *testing.T) {
	d := rcu.New()
	stop := make(chan bool)
	var ran atomic.Int64
	d.Call(func() { // so that one pass takes all
		for range 1000 {
			d.Call(func() {
				<-stop
				ran.Add(1)
			})
		}
	})
	step := func() {
		select {
		case stop <- true:
		case <-time.After(soon):
			t.Fatal("no callback runs")
		}
	}
	step() // The batch is running.
	c := d.StartPoll()
	for !d.Poll(c) {
		if ran.Load() > 800 {
			t.Fatalf("%d callbacks of a batch ran, and a grace period did not end", ran.Load())
		}
		time.Sleep(time.Millisecond) // longer than the worker goes without a look
		step()
	}
	late := d.Cookie()
	d.Call(func() {})
	for !d.Poll(late) {
		if ran.Load() > 960 {
			t.Fatalf("%d callbacks of a batch ran, and the grace period of a later one did not end", ran.Load())
		}
		time.Sleep(time.Millisecond)
		step()
	}
	close(stop)
	must(t, d.Close(bg))
	if ran.Load() != 1000 {
		t.Errorf("%d of 1000 callbacks ran", ran.Load())
	}
}

// A lazy Domain leaves callbacks alone, until they are old or many or somebody waits. Twin: noflush.
func TestLazy(t *testing.T) {
	const long = time.Minute
	ways := map[string]func(d *rcu.Domain, call func()){
		"time":        func(d *rcu.Domain, call func()) {},
		"Barrier":     func(d *rcu.Domain, call func()) { must(t, d.Barrier(bg)) },
		"Synchronize": func(d *rcu.Domain, call func()) { must(t, d.Synchronize(bg)) },
		"Expedited":   func(d *rcu.Domain, call func()) { must(t, d.SynchronizeExpedited(bg)) },
		"Wait":        func(d *rcu.Domain, call func()) { must(t, d.Wait(bg, d.Cookie())) },
		"StartPoll":   func(d *rcu.Domain, call func()) { d.StartPoll() },
		"Close":       func(d *rcu.Domain, call func()) { must(t, d.Close(bg)) },
		"many": func(d *rcu.Domain, call func()) {
			for range 1000 + 64*asm.Columns() {
				call()
			}
		},
	}
	for name, way := range ways {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := rcu.New(rcu.WithLazy(long))
				start := time.Now()
				var n, chain int64
				var ran atomic.Int64
				var chained func()
				call := func() {
					n++
					d.Call(func() { ran.Add(1) })
				}
				chained = func() {
					if chain++; chain < 3 {
						d.Call(chained)
					}
				}
				call()
				time.Sleep(long / 2)
				synctest.Wait()
				if ran.Load() != 0 || d.Stats().GracePeriods != 0 || d.Stats().OldestPending != long/2 {
					t.Fatalf("%d callbacks have run: %v", ran.Load(), d.Stats())
				}
				call()
				if name == "Close" {
					d.Call(chained)
				}
				way(d, call)
				if name == "time" {
					time.Sleep(long/2 - time.Second)
					synctest.Wait()
					if ran.Load() != 0 {
						t.Errorf("a callback ran too early")
					}
					time.Sleep(2 * time.Second)
					start = start.Add(long/2 + time.Second)
				}
				time.Sleep(time.Second)
				synctest.Wait()
				if ran.Load() < 2 || ran.Load() < n && name != "many" {
					t.Errorf("%d of %d callbacks have run, %v", ran.Load(), n, d.Stats())
				}
				if took := time.Since(start); took > long/2+3*time.Second {
					t.Errorf("it took %v", took)
				}
				if name != "Close" {
					must(t, d.Close(bg))
				}
				if ran.Load() != n || name == "Close" && chain != 3 {
					t.Errorf("%d of %d callbacks ran", ran.Load(), n)
				}
				if d.HasWorker() {
					t.Error("an idle Domain has a worker")
				}
			})
		})
	}
}

// A Reader that does not leave, and updaters that do not stop: what is pending stays within the limit
// and a batch for each CPU, so does memory, there is one report that says where the Reader was made, and
// all is freed within a second after it has left. QUIESCE_FLOOD=30s makes it longer. Twin: nolimit.
func TestFault_R11_Flood(t *testing.T) {
	for _, updaters := range []int{1, 8} {
		t.Run(fmt.Sprint("updaters=", updaters), func(t *testing.T) {
			patience.Until(t, "all is freed within a second", func() (any, bool) {
				took := flood(t, updaters)
				return took, took <= time.Second
			})
		})
	}
}

// flood returns how long it took until all was freed.
func flood(t *testing.T, updaters int) (took time.Duration) {
	const limit = 100_000
	long := 500 * time.Millisecond
	if testing.Short() {
		long = 100 * time.Millisecond
	}
	if s := os.Getenv("QUIESCE_FLOOD"); s != "" {
		var err error
		if long, err = time.ParseDuration(s); err != nil {
			t.Fatal(err)
		}
	}
	var reports stalls
	d := rcu.New(rcu.WithMaxPending(limit), rcu.WithStallTimeout(long/4), rcu.WithStallHandler(reports.handle))
	r := makeStalled(d)
	type object struct{ _ [64]byte }
	heap := func() int64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	idle := heap()
	var made, freed atomic.Int64
	var stop atomic.Bool
	var wg sync.WaitGroup
	for range updaters {
		wg.Go(func() {
			for !stop.Load() {
				rcu.Retire(d, new(object), func(*object) { freed.Add(1) })
				made.Add(1)
			}
		})
	}
	var reached time.Time // not before this
	eventually(t, "the limit is reached", func() bool {
		now := time.Now()
		if d.Stats().CallbacksPending > limit {
			return true
		}
		reached = now
		return false
	})
	before, residentBefore := heap(), resident(t)
	var most uint64
	for end := time.Now().Add(long); time.Now().Before(end); time.Sleep(time.Millisecond) {
		if most = max(most, d.Stats().CallbacksPending); most > 2*limit {
			t.Fatalf("%d callbacks pending with a limit of %d", most, limit)
		}
	}
	since := time.Since(reached)
	after, residentAfter := heap(), resident(t)
	if freed.Load() != 0 {
		t.Error("objects were freed in spite of a section")
	}
	// One Call of 64 looks at the count, and past the limit each takes longer and longer.
	if most > limit+uint64(asm.Columns()*64+updaters)+slowed(updaters, since) {
		t.Errorf("%d callbacks pending with a limit of %d", most, limit)
	}
	if after > before+before/5 {
		t.Errorf("the heap grew from %d to %d", before, after)
	}
	if residentAfter > residentBefore+residentBefore/5 {
		t.Errorf("the process grew from %d to %d", residentBefore, residentAfter)
	}
	start := time.Now()
	r.Unlock()
	stop.Store(true)
	mustEnd(t, async(wg.Wait), "an updater")
	eventually(t, "all objects freed", func() bool { return freed.Load() == made.Load() })
	took = time.Since(start)
	r.Close()
	must(t, d.Close(bg))
	if got := reports.get(); len(got) != 1 || !strings.Contains(got[0].String(), "makeStalled") {
		t.Errorf("not one report that says where the Reader was made, but %v", got)
	}
	end := heap()
	if end > idle+before/10 {
		t.Errorf("the heap was %d before the flood, and %d after it", idle, end)
	}
	t.Logf("%v: at most %d pending of %d, heap %d, %d and then %d, in the end %d, RSS %d and then %d, freed in %v", long,
		most, made.Load(), idle, before, after, end, residentBefore, residentAfter, took)
	return took
}

// resident returns how much memory this process has, and 0 where /proc does not say.
func resident(t *testing.T) (bytes int) {
	s, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0
	}
	if _, err := fmt.Sscan(string(s), new(int), &bytes); err != nil {
		t.Fatal(err)
	}
	return bytes * os.Getpagesize()
}

// slowed returns how often n callers can have called in a time, with ten milliseconds for the first call past
// the limit, ten more for each that is pending beside it, and at most a second.
func slowed(n int, t time.Duration) (calls uint64) {
	for spent := time.Duration(0); spent < t; calls++ {
		spent += min(time.Duration(calls+1)*10*time.Millisecond, time.Second) / time.Duration(n)
	}
	return calls
}
