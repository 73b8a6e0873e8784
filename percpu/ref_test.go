package percpu

import (
	"sync"
	"sync/atomic"
	"testing"
)

// TestFault_P14: Kill beside Gets and Puts of all kinds: release runs once, when
// the last reference is gone, and nothing is got after that.
func TestFault_P14(t *testing.T) {
	rounds := 20_000
	if testing.Short() {
		rounds = 1_000
	}
	for n := range rounds {
		var released atomic.Int32
		r := NewRef(func() { released.Add(1) })
		var wg sync.WaitGroup
		for range 4 {
			r.Get()
			wg.Go(func() {
				for range n % 50 {
					r.Get()
					if released.Load() != 0 {
						t.Error("released with references out")
					}
					r.Put()
					if r.TryGetLive() {
						r.Put()
					}
				}
				r.Put()
			})
		}
		r.Kill()
		if r.TryGetLive() {
			t.Fatal("TryGetLive after Kill")
		}
		wg.Wait()
		if released.Load() != 1 || !r.Zero() || !r.Dying() || r.TryGet() {
			t.Fatalf("round %d: released %d times, zero %v", n, released.Load(), r.Zero())
		}
		if n%3 == 0 {
			r.Reinit()
			if r.Dying() || r.Zero() || !r.TryGetLive() {
				t.Fatal("Reinit did not make the Ref live")
			}
			r.Put()
			r.Kill()
			if released.Load() != 2 {
				t.Fatal("not released after Reinit and Kill")
			}
		}
	}
}

func TestRefMisuse(t *testing.T) {
	panics := func(want string, f func()) {
		t.Helper()
		defer func() {
			t.Helper()
			if got := recover(); got != want {
				t.Errorf("got panic %v, want %q", got, want)
			}
		}()
		f()
	}
	releases := 0
	r := NewRef(func() { releases++ })
	panics("percpu: Reinit of a Ref that has references", r.Reinit)
	r.Kill()
	panics("percpu: Kill of a Ref that was killed already", r.Kill)
	panics("percpu: Get of a Ref that has reached zero", r.Get)
	panics("percpu: more Puts than references: found by Put of a Ref", r.Put)
	if releases != 1 || !r.Zero() {
		t.Errorf("released %d times", releases)
	}
}
