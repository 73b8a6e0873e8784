package seqlock

import (
	"sync"
	"sync/atomic"
	"testing"
)

var _ sync.Locker = (*Lock)(nil)

// write is a write of nothing.
func write(l *Lock) {
	l.Lock()
	defer l.Unlock()
}

func TestLock(t *testing.T) {
	var l Lock
	s := l.Begin()
	if l.Retry(s) {
		t.Error("Retry without a write")
	}
	l.Lock()
	if in, ok := l.TryBegin(); ok || !l.Retry(s) || !l.Retry(in) {
		t.Error("a read is valid inside a write")
	}
	l.Unlock()
	if next := l.Begin(); next == s || l.Retry(next) || !l.Retry(s) {
		t.Errorf("next sequence %d after %d", next, s)
	}
	calls := 0
	l.Read(func() { calls++ })
	if calls != 1 {
		t.Errorf("Read without a writer calls its function %d times", calls)
	}
}

func TestLock_Misuse(t *testing.T) {
	const unlock = "seqlock: Unlock of a Lock that is not locked"
	var l Lock
	mustPanic(t, unlock, l.Unlock)
	write(&l)
	mustPanic(t, unlock, l.Unlock)
	write(&l) // works all the same
}

func TestLock_BeginWaits(t *testing.T) {
	var l Lock
	l.Lock()
	got := make(chan uint64)
	for range 3 {
		go func() { got <- l.Begin() }()
	}
	l.Unlock()
	for range 3 {
		if s := <-got; s != 0 && s != 2 {
			t.Errorf("Begin = %d", s)
		}
	}
}

// TestLock_Read_TakesTheLock has a writer fall into every attempt.
func TestLock_Read_TakesTheLock(t *testing.T) {
	var l Lock
	calls, locked := 0, false
	l.Read(func() {
		calls++
		if l.mu.TryLock() {
			l.mu.Unlock()
			write(&l)
		} else {
			locked = true
		}
	})
	if calls != tries+1 || !locked {
		t.Errorf("%d calls, the last one with the lock taken: %v; want %d and true", calls, locked, tries+1)
	}
	write(&l) // Read has released it
}

func TestLock_Read_Panics(t *testing.T) {
	var l Lock
	mustPanic(t, "first", func() { l.Read(func() { panic("first") }) })
	calls := 0
	mustPanic(t, "last", func() {
		l.Read(func() {
			if calls++; calls > tries {
				panic("last")
			}
			write(&l)
		})
	})
	write(&l) // was released
}

func TestHammerLock(t *testing.T) {
	var (
		l       Lock
		p       pair
		stop    atomic.Bool
		writers sync.WaitGroup
		wg      sync.WaitGroup
		writes  atomic.Uint64
	)
	for range 2 {
		writers.Go(func() {
			for !stop.Load() {
				l.Lock()
				p.a.Store(p.a.Load() + 1) // not an atomic add: the lock must do
				p.b.Store(p.b.Load() + 1)
				l.Unlock()
				writes.Add(1)
			}
		})
	}
	for range 2 {
		wg.Go(func() {
			var a, b uint64
			read := func() { a, b = p.a.Load(), p.b.Load() }
			for range hammerReads() {
				if l.Read(read); a != b {
					t.Errorf("Read: %d and %d", a, b)
					return
				}
			}
		})
	}
	wg.Wait()
	stop.Store(true)
	writers.Wait()
	if got := p.a.Load(); got != writes.Load() {
		t.Errorf("%d after %d writes", got, writes.Load())
	}
}
