package percpu

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/quiesce-go/quiesce/asm"
)

// TestFault_P14: Kill beside Gets and Puts of all kinds: release runs once, when
// the last reference is gone, and nothing is got after that.
func TestFault_P14(t *testing.T) {
	rounds := 100_000
	if testing.Short() {
		rounds = 1_000
	}
	for n := range rounds {
		var released atomic.Int32
		r := NewRef(func() { released.Add(1) })
		var wg sync.WaitGroup
		for range 8 {
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

// TestHammerRef: Kill finds every reference that is out, however close it comes to
// the Get. Twin: nofence.
func TestHammerRef(t *testing.T) {
	long := 200 * time.Millisecond
	if testing.Short() {
		long = 50 * time.Millisecond
	}
	if mutant != mutantNone {
		long = 20 * time.Second
	}
	var released atomic.Int64
	r := NewRef(func() { released.Add(1) })
	var stop, failed atomic.Bool
	var got atomic.Int64
	var wg sync.WaitGroup
	for range max(1, runtime.GOMAXPROCS(0)-1) {
		wg.Go(func() {
			defer func() {
				if why := recover(); why != nil {
					failed.Store(true)
					t.Error("it panics: ", why)
				}
			}()
			for n := 0; !stop.Load(); n++ {
				if !r.TryGetLive() {
					continue
				}
				if r.Zero() {
					failed.Store(true)
					t.Error("no references, with one out")
					return
				}
				r.Put()
				got.Add(1)
			}
		})
	}
	rounds := int64(0)
	for start := time.Now(); time.Since(start) < long && !failed.Load(); rounds++ {
		for range rounds % 64 {
			asm.Pause()
		}
		r.Kill()
		for end := time.Now().Add(10 * time.Second); released.Load() <= rounds && !failed.Load() && time.Now().Before(end); {
			runtime.Gosched()
		}
		if !failed.Load() && (released.Load() != rounds+1 || !r.Zero()) {
			failed.Store(true)
			t.Errorf("round %d: released %d times", rounds, released.Load())
		}
		if !failed.Load() {
			r.Reinit()
		}
	}
	stop.Store(true)
	wg.Wait()
	t.Logf("%d rounds, %d references", rounds, got.Load())
}

func panics(t *testing.T, want string, f func()) {
	t.Helper()
	defer func() {
		t.Helper()
		if got := recover(); got != want {
			t.Errorf("got panic %v, want %q", got, want)
		}
	}()
	f()
}

// TestRef_Zero: a Ref that NewRef has not made has no reference, and is not taken for an RWMutex,
// which is ready.
func TestRef_Zero(t *testing.T) {
	r := new(Ref)
	panics(t, "percpu: use of a Ref that NewRef has not made", r.Get)
	panics(t, "percpu: use of a Ref that NewRef has not made", r.Put)
	if r.TryGet() || r.TryGetLive() || !r.Zero() {
		t.Error("the zero Ref has a reference")
	}
}

func TestRefMisuse(t *testing.T) {
	releases := 0
	r := NewRef(func() { releases++ })
	panics(t, "percpu: Reinit of a Ref that has references", r.Reinit)
	r.Kill()
	panics(t, "percpu: Kill of a Ref that was killed already", r.Kill)
	panics(t, "percpu: Get of a Ref that has reached zero", r.Get)
	panics(t, "percpu: more Puts than references: found by Put of a Ref", r.Put)
	if releases != 1 || !r.Zero() {
		t.Errorf("released %d times", releases)
	}
}
