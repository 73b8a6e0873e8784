package percpu

import (
	"math"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/quiesce-go/quiesce/internal/storm"
)

func TestPool(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	var p Pool[int]
	if v, n := p.Get(), p.Len(); v != 0 || n != 0 || p.Drain(nil) != 0 {
		t.Errorf("an empty Pool holds %d objects and gave %d", n, v)
	}
	for i := range 5 {
		p.Put(i + 1)
	}
	if p.Len() != 5 {
		t.Errorf("Len is %d after 5 Puts", p.Len())
	}
	for want := 5; want > 2; want-- {
		if v := p.Get(); v != want {
			t.Errorf("got %d, want %d, the last that was put", v, want)
		}
	}
	got := map[int]bool{}
	if n := p.Drain(func(v int) { got[v] = true }); n != 2 || !got[1] || !got[2] || p.Len() != 0 {
		t.Errorf("Drain found %d objects, %v, and left %d", n, got, p.Len())
	}
	p.New = func() int { return 7 }
	if v := p.Get(); v != 7 {
		t.Errorf("New returns 7, Get %d", v)
	}
}

// TestPool_Keeps: nothing is dropped while there are fewer objects than Cap, whoever
// puts them, and nothing is lost to the garbage collector.
func TestPool_Keeps(t *testing.T) {
	for _, procs := range []int{1, 2, 3 * runtime.NumCPU()} {
		for _, c := range []int{1, 2, 7, 64} {
			defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(procs))
			p := Pool[*int]{Cap: c}
			var wg sync.WaitGroup
			for i := range c {
				wg.Go(func() {
					p.Put(&i)
					if i%3 == 0 {
						runtime.Gosched()
						if v := p.Get(); v != nil {
							p.Put(v)
						}
					}
				})
			}
			wg.Wait()
			runtime.GC()
			runtime.GC()
			seen := map[int]bool{}
			n := p.Len()
			p.Drain(func(v *int) { seen[*v] = true })
			if n != c || len(seen) != c {
				t.Errorf("procs %d, Cap %d: Len %d, %d drained", procs, c, n, len(seen))
			}
		}
	}
}

// TestPool_Bound: a Pool holds no more than the stacks and the depot can.
func TestPool_Bound(t *testing.T) {
	p := Pool[int]{Cap: 8}
	for i := range 100_000 {
		p.Put(i)
		if i%1000 == 0 {
			runtime.Gosched()
		}
	}
	p.mu.Lock()
	most := p.limit + len(p.stacks)*8
	p.mu.Unlock()
	if n := p.Len(); n < 8 || n > most {
		t.Errorf("%d objects, at least 8 and at most %d can be", n, most)
	}
}

// A pooled object has at most one owner.
type pooled struct {
	owned atomic.Bool
	uses  int // not atomic, so that the race detector checks the edges
}

// TestHammerPool: no object has two owners, and none is lost, while Drains run beside
// Gets and Puts under a storm. Twin: nostop.
func TestHammerPool(t *testing.T) {
	var made, torn atomic.Int64
	p := Pool[*pooled]{Cap: 32, New: func() *pooled {
		made.Add(1)
		return new(pooled)
	}}
	own := func(v *pooled) {
		if v == nil || v.owned.Swap(true) {
			torn.Add(1)
			return
		}
		v.uses++
	}
	one := func(hold int) {
		var held [40]*pooled
		for i := range hold {
			held[i] = p.Get()
			own(held[i])
		}
		for _, v := range held[:hold] {
			if v == nil || !v.owned.Swap(false) {
				torn.Add(1)
				return
			}
			p.Put(v)
		}
	}
	calm := storm.Start(t, storm.Threads(func() { one(1) }))
	var work, drainer sync.WaitGroup
	var stop atomic.Bool
	var drained atomic.Int64
	drainer.Go(func() {
		for !stop.Load() {
			var all []*pooled
			n := p.Drain(func(v *pooled) {
				own(v)
				all = append(all, v)
			})
			drained.Add(int64(n))
			for _, v := range all {
				if v != nil {
					v.owned.Store(false)
					p.Put(v)
				}
			}
			runtime.Gosched()
		}
	})
	const goroutines = 8
	n := storm.Size(400_000) / goroutines
	if mutant != mutantNone {
		n = math.MaxInt
		time.AfterFunc(20*time.Second, func() { torn.CompareAndSwap(0, -1) })
	}
	for g := range goroutines {
		work.Go(func() {
			for i := 0; i < n && torn.Load() == 0; i++ {
				one(1 + (i+g)%4 + i%97/96*35)
			}
		})
	}
	work.Wait()
	stop.Store(true)
	drainer.Wait()
	calm()
	if torn.Load() > 0 {
		t.Fatalf("%d objects had two owners", torn.Load())
	}
	left := p.Len()
	if got := p.Drain(func(v *pooled) {
		if v.owned.Swap(true) {
			t.Error("an object was drained twice")
		}
	}); got != left {
		t.Errorf("Len was %d, %d were drained", left, got)
	}
	t.Logf("%d objects made, %d drained in between, %d left", made.Load(), drained.Load(), left)
}

// TestPool_Drain: what was put before a Drain is found by it, though others put and
// get all the time.
func TestPool_Drain(t *testing.T) {
	rounds := 200
	if testing.Short() {
		rounds = 30
	}
	p := Pool[*int]{Cap: 16}
	var stop atomic.Bool
	var wg sync.WaitGroup
	for range 3 {
		wg.Go(func() {
			for !stop.Load() {
				var taken [20]*int
				for i := range taken {
					taken[i] = p.Get()
				}
				for _, v := range taken {
					if v != nil {
						p.Put(v)
					}
				}
				runtime.Gosched()
			}
		})
	}
	for range rounds {
		// No more than Cap, so that nothing is dropped; half a stack at a time moves through
		// the depot meanwhile.
		mine := map[*int]bool{}
		for range 16 {
			v := new(int)
			mine[v] = true
			p.Put(v)
		}
		for tries := 0; len(mine) > 0; tries++ {
			p.Drain(func(v *int) { delete(mine, v) })
			if tries > 1_000_000 {
				t.Fatalf("%d objects are gone", len(mine))
			}
		}
	}
	stop.Store(true)
	wg.Wait()
}

func TestPool_NoAllocation(t *testing.T) {
	if raceEnabled {
		t.Skip("race builds allocate")
	}
	p := Pool[*int]{New: func() *int { return new(int) }}
	p.Put(p.Get())
	if n := testing.AllocsPerRun(100, func() {
		runtime.GC()
		for range 10 {
			p.Put(p.Get())
		}
	}); n != 0 {
		t.Errorf("%v allocations in 10 pairs and a collection", n)
	}
}

func TestPool_Misuse(t *testing.T) {
	p := Pool[int]{New: func() int { panic("New panics") }}
	attempt := func(want any, f func()) {
		t.Helper()
		defer func() {
			t.Helper()
			if got := recover(); got != want {
				t.Errorf("panic %v, want %v", got, want)
			}
		}()
		f()
	}
	attempt("New panics", func() { p.Get() })
	p.Put(1)
	attempt("fn panics", func() { p.Drain(func(int) { panic("fn panics") }) })
	attempt(nil, func() { p.Put(2) })
	// fn uses the Pool that it drains.
	if n := p.Drain(func(v int) { p.Put(v) }); n != 1 || p.Get() != 2 {
		t.Errorf("%d drained", n)
	}
	bad := Pool[int]{Cap: -1}
	attempt("percpu: Put to a Pool with a negative Cap", func() { bad.Put(1) })
}

// TestPool_Nil: a nil Pool panics as any nil pointer does. It must not be found out while pinned,
// which no deferred function could recover from.
func TestPool_Nil(t *testing.T) {
	var p *Pool[int]
	for name, f := range map[string]func(){
		"Get":   func() { p.Get() },
		"Put":   func() { p.Put(1) },
		"Len":   func() { p.Len() },
		"Drain": func() { p.Drain(nil) },
	} {
		func() {
			defer func() {
				if _, ok := recover().(runtime.Error); !ok {
					t.Errorf("%s of a nil Pool does not panic", name)
				}
			}()
			f()
		}()
	}
}
