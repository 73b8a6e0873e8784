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

type localThing struct {
	n     int
	inUse bool
}

// TestHammerLocal: nobody else has the T while fn runs, whatever fn does, and no
// update is lost.
func TestHammerLocal(t *testing.T) {
	rounds := 50_000
	if testing.Short() {
		rounds = 5_000
	}
	l := NewLocal(func(cpu int) localThing { return localThing{} })
	var wg sync.WaitGroup
	for g := range 16 {
		wg.Go(func() {
			for k := range rounds {
				l.Do(func(v *localThing) {
					if v.inUse {
						t.Error("lent twice")
					}
					v.inUse = true
					switch {
					case k%1000 == 999:
						time.Sleep(10 * time.Microsecond)
					case k%100 == g:
						runtime.Gosched()
					}
					v.n++
					v.inUse = false
				})
			}
		})
	}
	wg.Wait()
	sum := 0
	for _, v := range l.All() {
		sum += v.n
	}
	if sum != 16*rounds {
		t.Errorf("%d updates, want %d", sum, 16*rounds)
	}
}

// TestFault_P6: fn may panic, exit, block, allocate and use other Locals; the T
// is given back.
func TestFault_P6(t *testing.T) {
	l, other := NewLocal[int](nil), NewLocal[int](nil)
	attempt := func(fn func(*int)) {
		done := make(chan struct{})
		go func() {
			defer close(done)
			defer func() { _ = recover() }()
			l.Do(fn)
		}()
		<-done
	}
	for range 200 {
		attempt(func(*int) { panic("fn panics") })
		attempt(func(*int) { runtime.Goexit() })
		attempt(func(*int) {
			c := make(chan int)
			go func() { c <- 1 }()
			<-c
			_ = make([]byte, 1<<20)
		})
		attempt(func(v *int) { other.Do(func(w *int) { *v++; *w++ }) })
	}
	sum := 0
	for _, v := range l.All() {
		sum += *v
	}
	if sum != 200 {
		t.Errorf("%d calls were counted, want 200", sum)
	}
}

// TestLocalInitPanics: a panic in init gives the slot back, unmade.
func TestLocalInitPanics(t *testing.T) {
	fail := true
	l := NewLocal(func(int) int {
		if fail {
			panic("init panics")
		}
		return 7
	})
	func() {
		defer func() {
			if recover() != "init panics" {
				t.Error("the panic of init did not come through")
			}
		}()
		l.Do(func(*int) { t.Error("fn ran without a T") })
	}()
	for range l.All() {
		t.Error("a T was made")
	}
	fail = false
	l.Do(func(v *int) {
		if *v != 7 {
			t.Errorf("the T is %d", *v)
		}
	})
}

// TestLocal_OnlyKnownToDo: a Do may be the last to know its Local. Its memory goes to nobody else
// before the Do is over, which then stores to it.
func TestLocal_OnlyKnownToDo(t *testing.T) {
	var collected atomic.Bool
	known := new([64]byte) // to the Local only
	runtime.AddCleanup(known, func(c *atomic.Bool) { c.Store(true) }, &collected)
	NewLocal(func(int) int { return int(known[0]) }).Do(func(*int) {
		for range 10 {
			runtime.GC()
			time.Sleep(time.Millisecond)
		}
		if collected.Load() {
			t.Error("the Local was collected while it was lent")
		}
	})
}

// TestLocal_Bubble: a goroutine in a testing/synctest bubble may wait for one outside, and what it left
// is of use to those who wait outside later.
func TestLocal_Bubble(t *testing.T) {
	l := NewLocal[int](nil)
	var enough atomic.Bool
	lend := func() (slot int, over <-chan struct{}) {
		enough.Store(false)
		lent, done := make(chan int), make(chan struct{})
		go func() {
			defer close(done)
			l.Do(func(*int) {
				for slot := range asm.Slots() {
					if l.locks.Held(slot, 0) {
						lent <- slot
					}
				}
				for !enough.Load() {
					runtime.Gosched()
				}
			})
		}()
		return <-lent, done
	}
	wait := func(slot int) {
		var wg sync.WaitGroup
		wg.Go(func() { l.wait(slot) })
		s := l.makeSlot(slot)
		for asleep := false; !asleep; runtime.Gosched() {
			s.mu.Lock()
			asleep = s.wake != nil && s.waiters.Load() == 1
			s.mu.Unlock()
		}
		enough.Store(true)
		wg.Wait()
	}
	for range 3 {
		slot, over := lend()
		synctest.Test(t, func(*testing.T) { wait(slot) })
		<-over
		slot, over = lend()
		wait(slot)
		<-over
		// Nobody is asked to wait, but what to sleep on is made.
		synctest.Test(t, func(*testing.T) { l.wait(slot) })
	}
}

func BenchmarkLocalDo(b *testing.B) {
	// One statistic updated by every CPU, against a mutex around one.
	b.Run("impl=ours", func(b *testing.B) {
		b.ReportAllocs()
		l := NewLocal[int](nil)
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				l.Do(func(v *int) { *v++ })
			}
		})
	})
	b.Run("impl=mutex", func(b *testing.B) {
		b.ReportAllocs()
		var mu sync.Mutex
		n := 0
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				mu.Lock()
				n++
				mu.Unlock()
			}
		})
	})
}
