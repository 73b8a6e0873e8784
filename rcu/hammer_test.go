package rcu_test

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/quiesce-go/quiesce/internal/storm"
	"github.com/quiesce-go/quiesce/internal/tier"
	"github.com/quiesce-go/quiesce/rcu"
)

// TestHammer has readers and updaters of every kind work on the same objects, which are spoilt and used
// again when they are freed. No section may ever meet a freed object, none may be freed twice, and all
// must be freed in the end. Twins: join, skipslot.
func TestHammer(t *testing.T) {
	long := 150 * time.Millisecond
	if testing.Short() {
		long = 30 * time.Millisecond
	}
	if rcu.Mutant != "" {
		long = 5 * time.Second
	}
	for _, procs := range []int{1, 2, 4} {
		for _, tr := range []tier.Tier{tier.RSEQ, tier.Pinned, tier.Shared} {
			for _, name := range []string{"calm", "storm", "fenced", "debug"} {
				t.Run(fmt.Sprintf("tier=%v/%s/procs=%d", tr, name, procs), func(t *testing.T) {
					now, undo := tier.Switch(tr)
					defer undo()
					if now != tr {
						t.Skipf("no tier %v here", tr)
					}
					defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(procs))
					var opts []rcu.Option
					switch name {
					case "fenced":
						opts = append(opts, rcu.WithFences())
					case "debug": // and whatever else makes a difference
						opts = append(opts, rcu.WithDebug(), rcu.WithLazy(time.Millisecond), rcu.WithMaxPending(20),
							rcu.WithStallTimeout(time.Millisecond), rcu.WithStallHandler(func(s rcu.Stall) { _ = s.String() }))
					}
					hammer(t, rcu.New(opts...), long, name == "storm")
				})
			}
		}
	}
}

// An anvil is the state of a hammer test.
type anvil struct {
	d     *rcu.Domain
	slots [8]rcu.Pointer[target]
	stop  atomic.Bool
	ages  [3]atomic.Int64 // of the objects that sections held, at their ends

	retired, freed atomic.Int64

	mu   sync.Mutex
	free []*target
}

// A target is live (0), unpublished (1), or freed (2). Its number changes whenever it is used
// again. The number is not atomic, so that the race detector checks the edges.
type target struct {
	rcu.Head
	number uint64
	age    atomic.Int32
}

func hammer(t *testing.T, d *rcu.Domain, long time.Duration, stormy bool) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	a := &anvil{d: d}
	calm := func() {}
	if stormy {
		calm = storm.Start(t, storm.Without(storm.Procs), storm.Threads(func() { d.ReadLock().Unlock() }))
	}
	for i := range a.slots {
		a.slots[i].Store(&target{number: 1})
	}
	var wg sync.WaitGroup
	handOver := make(chan func())
	for i := range uint64(4) {
		rng := rand.New(rand.NewPCG(seed, i))
		wg.Go(func() {
			for !a.stop.Load() {
				a.reader(t, rng, handOver)
			}
		})
	}
	var other sync.WaitGroup
	other.Go(func() { // ends sections of others
		for f := range handOver {
			f()
		}
	})
	var updaters sync.WaitGroup
	for i := range uint64(3) {
		rng := rand.New(rand.NewPCG(seed, 100+i))
		updaters.Go(func() { a.updater(t, rng) })
	}
	end := time.Now().Add(long)
	for time.Now().Before(end) && !t.Failed() {
		time.Sleep(long / 20)
		runtime.GC()
	}
	a.stop.Store(true)
	mustEnd(t, async(updaters.Wait), "an updater")
	mustEnd(t, async(wg.Wait), "a reader")
	close(handOver)
	mustEnd(t, async(other.Wait), "who ends sections of others")
	calm()
	must(t, d.Close(bg))
	eventually(t, "all objects freed", func() bool { return a.freed.Load() == a.retired.Load() })
	if a.ages[2].Load() > 0 {
		t.Errorf("sections ended with live, unpublished and freed objects: %d, %d, %d", a.ages[0].Load(), a.ages[1].Load(), a.ages[2].Load())
	}
	t.Logf("%d sections, %d of them with an object that was unpublished; %d objects retired; %d grace periods",
		a.ages[0].Load()+a.ages[1].Load(), a.ages[1].Load(), a.retired.Load(), d.Stats().GracePeriods)
}

// reader is one life of a reader: some sections, of one kind.
func (a *anvil) reader(t *testing.T, rng *rand.Rand, handOver chan<- func()) {
	var r *rcu.Reader
	if rng.IntN(2) == 0 {
		r = a.d.NewReader()
	}
	for range rng.IntN(2000) {
		if a.stop.Load() {
			break
		}
		if r != nil {
			r.Lock()
			o, number := a.look(t, rng)
			switch rng.IntN(8) {
			case 0:
				r.Lock()
				a.look(t, rng)
				r.Unlock()
				a.check(t, o, number)
			case 1:
				r.Refresh()
				a.look(t, rng)
			}
			r.Unlock()
			continue
		}
		g := a.d.ReadLock()
		o, number := a.look(t, rng)
		switch rng.IntN(100) {
		case 0:
			f := func() {
				a.check(t, o, number)
				g.Unlock()
			}
			select {
			case handOver <- f:
				continue
			default:
			}
		case 1:
			g2 := a.d.ReadLock()
			g.Unlock()
			a.look(t, rng)
			g = g2
		}
		g.Unlock()
	}
	if r != nil && rng.IntN(4) > 0 {
		r.Close() // else it is left to the collector
	}
}

//go:noinline
func read(o *target) uint64 { return o.number }

// look is what a section does: it finds an object, waits a little, and sees whether it still is what
// it was.
func (a *anvil) look(t *testing.T, rng *rand.Rand) (o *target, number uint64) {
	o = a.slots[rng.IntN(len(a.slots))].Load()
	number = read(o)
	switch n := rng.IntN(2000); {
	case n == 0:
		time.Sleep(time.Duration(rng.IntN(2000)) * time.Microsecond)
	case n < 20:
		runtime.Gosched()
	case n < 25:
		c := make(chan int)
		go func() { c <- 1 }()
		<-c
	default:
		for range n % 64 {
			read(o)
		}
	}
	a.check(t, o, number)
	return o, number
}

func (a *anvil) check(t *testing.T, o *target, number uint64) {
	a.ages[o.age.Load()].Add(1)
	if now := read(o); now != number {
		t.Errorf("object %d is %d at the end of a section", number, now)
	}
}

// updater replaces objects, and frees the old ones in every way there is.
func (a *anvil) updater(t *testing.T, rng *rand.Rand) {
	d := a.d
	type polled struct {
		c rcu.Cookie
		o *target
	}
	var later []polled
	var idle target
	for !a.stop.Load() {
		o := a.slots[rng.IntN(len(a.slots))].Swap(a.fresh())
		if !o.age.CompareAndSwap(0, 1) {
			t.Error("an object that is not live was published")
		}
		a.retired.Add(1)
		switch rng.IntN(10) {
		case 0:
			must(t, d.Synchronize(bg))
			a.release(t, o)
		case 1:
			must(t, d.SynchronizeExpedited(bg))
			a.release(t, o)
		case 2:
			must(t, d.Wait(bg, d.Cookie()))
			a.release(t, o)
		case 3:
			later = append(later, polled{d.StartPoll(), o})
		case 4:
			d.Go(func() { a.release(t, o) })
		case 5:
			rcu.Retire(d, o, func(o *target) { a.release(t, o) })
		case 6, 7:
			d.CallHead(&o.Head, func(*rcu.Head) { a.release(t, o) })
		case 8:
			done := false
			d.Call(func() { a.release(t, o); done = true })
			must(t, d.Barrier(bg))
			if !done {
				t.Error("Barrier returned before a callback had run")
			}
		case 9:
			d.Call(func() { // chained: at least one more grace period
				d.Call(func() { a.release(t, o) })
			})
		}
		for len(later) > 0 && d.Poll(later[0].c) {
			a.release(t, later[0].o)
			later = later[1:]
		}
		for range rng.IntN(200) {
			read(&idle) // o is no longer ours to look at
		}
	}
	for _, p := range later {
		must(t, d.Wait(bg, p.c))
		a.release(t, p.o)
	}
}

// fresh returns an object that nobody can know.
func (a *anvil) fresh() *target {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.free) < 4 {
		return &target{number: 1}
	}
	o := a.free[0]
	a.free = a.free[1:]
	o.age.Store(0)
	return o
}

// release frees an object after its grace period.
func (a *anvil) release(t *testing.T, o *target) {
	if !o.age.CompareAndSwap(1, 2) {
		t.Error("an object was freed twice")
	}
	o.number++
	a.freed.Add(1)
	a.mu.Lock()
	defer a.mu.Unlock()
	a.free = append(a.free, o)
}
