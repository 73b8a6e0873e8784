package seqlock

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

func mustPanic(t *testing.T, want string, f func()) {
	t.Helper()
	defer func() {
		t.Helper()
		if r := recover(); r != want {
			t.Errorf("recovered %v, want %q", r, want)
		}
	}()
	f()
}

func TestCount(t *testing.T) {
	var c Count
	s := c.Begin()
	if c.Retry(s) {
		t.Error("Retry without a write")
	}
	c.WriteBegin()
	if _, ok := c.TryBegin(); ok || !c.Retry(s) {
		t.Error("a read is valid inside a write")
	}
	// A reader that does not look at ok. With seq as it is, it would be content.
	if in, _ := c.TryBegin(); !c.Retry(in) {
		t.Error("a read that began inside a write is valid")
	}
	if in := c.seq.Load(); c.Retry(in) {
		t.Error("TryBegin has no need to hide an odd sequence")
	}
	c.WriteEnd()
	if !c.Retry(s) {
		t.Error("a read is valid around a write")
	}
	if next, ok := c.TryBegin(); !ok || next <= s || next != c.Begin() || c.Retry(next) {
		t.Errorf("next sequence %d, %v after %d", next, ok, s)
	}
}

func TestCount_Misuse(t *testing.T) {
	const (
		end   = "seqlock: WriteEnd of a Count without a WriteBegin"
		begin = "seqlock: WriteBegin of a Count that is inside a write"
	)
	var c Count
	mustPanic(t, end, c.WriteEnd)
	c.WriteBegin()
	mustPanic(t, begin, c.WriteBegin)
	c.WriteEnd() // the write that was under way goes on
	mustPanic(t, end, c.WriteEnd)
	if s := c.Begin(); s != 2 {
		t.Errorf("sequence %d after one write, want 2", s)
	}
}

func TestCount_BeginWaits(t *testing.T) {
	var c Count
	c.WriteBegin()
	got := make(chan uint64)
	go func() { got <- c.Begin() }()
	select {
	case s := <-got:
		t.Fatalf("Begin = %d inside a write", s)
	case <-time.After(5 * time.Millisecond):
	}
	c.WriteEnd()
	if s := <-got; s != 2 {
		t.Errorf("Begin = %d, want 2", s)
	}
}

// pair is data beside a Count or Lock, both words always alike.
type pair struct{ a, b atomic.Uint64 }

func (p *pair) add() {
	p.a.Add(1)
	p.b.Add(1)
}

func TestHammerCount(t *testing.T) {
	var (
		c      Count
		p      pair
		stop   atomic.Bool
		writer sync.WaitGroup
		wg     sync.WaitGroup
	)
	writer.Go(func() {
		for !stop.Load() {
			c.WriteBegin()
			p.add()
			c.WriteEnd()
		}
	})
	for range 2 {
		wg.Go(func() {
			last := uint64(0)
			for range hammerReads() {
				for {
					s := c.Begin()
					a, b := p.a.Load(), p.b.Load()
					if c.Retry(s) {
						continue
					}
					if a != b || a != s/2 || a < last {
						t.Errorf("sequence %d: %d and %d, after %d", s, a, b, last)
						return
					}
					last = a
					break
				}
			}
		})
	}
	wg.Wait()
	stop.Store(true)
	writer.Wait()
}

func hammerReads() int {
	if testing.Short() {
		return 5000
	}
	return 100_000
}
