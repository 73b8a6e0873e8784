package percpu

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quiesce-go/quiesce/asm"
)

// TestHammerRWMutex has writers break and mend an invariant that readers check.
func TestHammerRWMutex(t *testing.T) {
	rounds := 20_000
	if testing.Short() {
		rounds = 2_000
	}
	if mutant != mutantNone {
		rounds = 2_000_000
	}
	var (
		rw   RWMutex
		a, b int
		wg   sync.WaitGroup
	)
	for g := range 8 {
		wg.Go(func() {
			for k := 0; k < rounds && !t.Failed(); k++ {
				if k%100 == 99 && g < 2 {
					rw.Lock()
					a++
					runtime.Gosched()
					b++
					rw.Unlock()
					continue
				}
				switch k % 3 {
				case 0:
					rw.RLock()
				case 1:
					for !rw.TryRLock() {
						runtime.Gosched()
					}
				case 2:
					rw.RLocker().Lock()
				}
				if a != b {
					t.Error("a reader beside a writer")
				}
				rw.RUnlock()
			}
		})
	}
	wg.Wait()
	if t.Failed() {
		return
	}
	if want := 2 * (rounds / 100); a != want || b != want {
		t.Errorf("%d and %d writes, want %d", a, b, want)
	}
	if !rw.TryLock() {
		t.Error("somebody has left a lock behind")
	}
}

// TestFault_P7: TryLock fails beside a reader, TryRLock beside a writer, and
// neither leaves anything behind.
func TestFault_P7(t *testing.T) {
	var rw RWMutex
	rw.RLock()
	if rw.TryLock() {
		t.Fatal("TryLock beside a reader")
	}
	rw.RUnlock()
	rounds := 100_000
	if testing.Short() {
		rounds /= 100
	}
	for range rounds { // a TryRLock that fails beside a writer leaves no reader behind
		rw.Lock()
		if rw.TryRLock() || rw.TryLock() {
			t.Fatal("TryRLock or TryLock beside a writer")
		}
		rw.Unlock()
		if !rw.TryLock() {
			t.Fatal("TryLock of a free RWMutex failed")
		}
		rw.Unlock()
	}
}

// TestFault_P8: a read lock may be given back by another goroutine, on another
// CPU, and the writer still gets in.
func TestFault_P8(t *testing.T) {
	var rw RWMutex
	for range 500 {
		rw.RLock()
		done := make(chan struct{})
		go func() {
			runtime.LockOSThread() // and end the thread
			rw.RUnlock()
			close(done)
		}()
		rw.Lock()
		rw.Unlock()
		<-done
	}
}

func TestRWMutexWriterWaits(t *testing.T) {
	var rw RWMutex
	rw.RLock()
	in := make(chan struct{})
	go func() {
		rw.Lock()
		close(in)
		rw.Unlock()
	}()
	select {
	case <-in:
		t.Fatal("a writer beside a reader")
	case <-time.After(20 * time.Millisecond):
	}
	rw.RUnlock()
	<-in
}

func TestRWMutexTooManyRUnlocks(t *testing.T) {
	var rw RWMutex
	if rw.plain() {
		t.Skip("a plain sync.RWMutex on this tier, whose own check is fatal")
	}
	rw.RLock()
	rw.RUnlock()
	rw.RUnlock()
	defer func() {
		if got := recover(); got != "percpu: RUnlock of an RWMutex that is not locked for reading" {
			t.Errorf("Lock after an RUnlock too many: %v", got)
		}
	}()
	rw.Lock()
}

// TestRWMutex has what sync.RWMutex promises: readers are inside together, a writer alone, and a
// writer that waits keeps new readers out, who come before the next writer.
func TestRWMutex(t *testing.T) {
	inStorm(t, func(t *testing.T, _ func(func()) func()) {
		var rw RWMutex
		const readers = 6
		var inside, out sync.WaitGroup
		leave := make(chan struct{})
		inside.Add(readers)
		for i := range readers {
			out.Go(func() {
				l := rw.RLocker()
				if i%2 == 0 {
					l.Lock()
					defer l.Unlock()
				} else {
					rw.RLock()
					defer rw.RUnlock()
				}
				inside.Done()
				<-leave
			})
		}
		inside.Wait() // all of them, at once

		var order []string
		var mu sync.Mutex
		note := func(what string) {
			mu.Lock()
			order = append(order, what)
			mu.Unlock()
		}
		out.Go(func() {
			rw.Lock()
			note("writer")
			rw.Unlock()
		})
		for rw.TryRLock() { // until the writer waits
			rw.RUnlock()
			runtime.Gosched()
		}
		if rw.TryLock() {
			t.Fatal("TryLock beside readers and a writer that waits")
		}
		out.Go(func() {
			rw.RLock()
			note("reader")
			rw.RUnlock()
		})
		time.Sleep(5 * time.Millisecond) // so that a reader who may not come in would
		mu.Lock()
		if len(order) != 0 {
			t.Errorf("%v came in beside readers, or before a writer", order)
		}
		mu.Unlock()
		close(leave)
		out.Wait()
		if len(order) != 2 || order[0] != "writer" {
			t.Errorf("the order was %v", order)
		}
		if !rw.TryLock() {
			t.Fatal("TryLock of a free RWMutex failed")
		}
		rw.Unlock()
	})
}

func TestRWMutex_NoAllocation(t *testing.T) {
	inStorm(t, func(t *testing.T, _ func(func()) func()) {
		var rw RWMutex
		rw.RLock()
		rw.RUnlock()
		rw.Lock()
		rw.Unlock()
		if n := testing.AllocsPerRun(100, func() {
			rw.RLock()
			rw.RUnlock()
			if rw.TryRLock() {
				rw.RUnlock()
			}
			rw.Lock()
			rw.Unlock()
		}); n != 0 {
			t.Errorf("%v allocations", n)
		}
	})
}

// TestRWMutex_Bubble: goroutines in a testing/synctest bubble and outside may use one RWMutex, as they
// may a sync.RWMutex: after each other, and a reader here while a writer sleeps there.
func TestRWMutex_Bubble(t *testing.T) {
	if !asm.Gates() {
		t.Skip("without gates it is a sync.RWMutex")
	}
	var rw RWMutex
	round := func(leave func()) {
		rw.RLock()
		var wg sync.WaitGroup
		wg.Go(func() {
			rw.Lock()
			defer rw.Unlock()
		})
		for !rw.asleep.Load() {
			runtime.Gosched()
		}
		leave()
		wg.Wait()
	}
	synctest.Test(t, func(*testing.T) { round(rw.RUnlock) })
	round(rw.RUnlock)
	var left atomic.Bool
	done := make(chan struct{})
	go func() {
		defer close(done)
		for !left.Load() {
			runtime.Gosched()
		}
		rw.RUnlock()
	}()
	synctest.Test(t, func(*testing.T) { round(func() { left.Store(true) }) })
	<-done
}
