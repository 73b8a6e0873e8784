package list_test

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/quiesce-go/quiesce/rcu"
	"github.com/quiesce-go/quiesce/rcu/list"
)

// A thing is in the List, or not, and used again after it was freed.
type thing struct {
	index   int
	in, out atomic.Uint64 // times: its insertion was over, its removal began; never, if that is to come
	number  uint64        // changes when it is freed; not atomic, so that the race detector looks
}

const never = math.MaxUint64

// TestHammerWalk has walkers check what All promises, while writers insert, remove and replace, and use
// again what they removed, after a grace period. No walk finds a thing that was freed, and each finds once
// what was in the List for all of its time. Twins: list-clearlink, list-earlylink.
func TestHammerWalk(t *testing.T) {
	for _, procs := range []int{1, 2, 4} {
		t.Run(fmt.Sprintf("procs=%d", procs), func(t *testing.T) {
			defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(procs))
			hammerWalk(t)
		})
	}
}

func hammerWalk(t *testing.T) {
	long := 300 * time.Millisecond
	if testing.Short() {
		long = 100 * time.Millisecond
	}
	var (
		d      = rcu.New()
		l      list.List[thing]
		things [64]thing
		clock  atomic.Uint64
		stop   atomic.Bool

		mu   sync.Mutex // of writers, with what follows
		free []*thing
		used []*list.Element[thing]

		walks, seen atomic.Int64
	)
	for i := range things {
		v := &things[i]
		v.index = i
		v.in.Store(never)
		free = append(free, v)
	}
	// take returns a thing that nobody can know.
	takeLocked := func() *thing {
		n := len(free)
		if n == 0 {
			return nil
		}
		v := free[n-1]
		free = free[:n-1]
		v.in.Store(never)
		v.out.Store(never)
		return v
	}
	giveBack := func(v *thing) {
		v.number++
		mu.Lock()
		defer mu.Unlock()
		free = append(free, v)
	}
	write := func(rng *rand.Rand) {
		mu.Lock()
		defer mu.Unlock()
		at := rng.IntN(max(len(used), 1))
		if rng.IntN(3) == 0 && len(used) > len(things)/4 {
			old := used[at].Value()
			old.out.Store(clock.Add(1))
			if v := takeLocked(); v != nil && rng.IntN(2) == 0 {
				l.Replace(used[at], v)
				v.in.Store(clock.Add(1))
			} else {
				if v != nil {
					free = append(free, v)
				}
				l.Remove(used[at])
				used[at] = used[len(used)-1]
				used = used[:len(used)-1]
			}
			rcu.Retire(d, old, giveBack)
			return
		}
		v := takeLocked()
		if v == nil {
			return
		}
		var e *list.Element[thing]
		switch op := rng.IntN(4); {
		case op == 0 || len(used) == 0:
			e = l.PushFront(v)
		case op == 1:
			e = l.PushBack(v)
		case op == 2:
			e = l.InsertBefore(v, used[at])
		default:
			e = l.InsertAfter(v, used[at])
		}
		v.in.Store(clock.Add(1))
		used = append(used, e)
	}
	walk := func(rng *rand.Rand) {
		var count [len(things)]int
		var numbers [len(things)]uint64
		begin := clock.Add(1)
		for v := range l.All() {
			count[v.index]++
			numbers[v.index] = v.number
			if rng.IntN(16) == 0 {
				runtime.Gosched()
			}
		}
		end := clock.Add(1)
		for i := range things {
			v := &things[i]
			if count[i] > 0 && v.number != numbers[i] {
				t.Errorf("thing %d was freed in the section that found it", i)
			}
			// A thing that was removed before the section may be used again meanwhile; then in
			// changes before out does.
			in := v.in.Load()
			out := v.out.Load()
			if v.in.Load() == in && in < begin && out > end && count[i] != 1 {
				t.Errorf("thing %d, in the List from %d to %d, was seen %d times in a walk from %d to %d", i, in, out, count[i], begin, end)
			}
			if count[i] > 0 {
				seen.Add(1)
			}
		}
		walks.Add(1)
	}

	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	var wg sync.WaitGroup
	for i := range uint64(3) {
		rng := rand.New(rand.NewPCG(seed, i))
		wg.Go(func() {
			r := d.NewReader()
			defer r.Close()
			for !stop.Load() {
				if rng.IntN(2) == 0 {
					r.Lock()
					walk(rng)
					r.Unlock()
				} else {
					d.Read(func() { walk(rng) })
				}
				runtime.Gosched() // or the worker gets its turn every 10 ms, and things are never free
			}
		})
	}
	for i := range uint64(2) {
		rng := rand.New(rand.NewPCG(seed, 100+i))
		wg.Go(func() {
			for !stop.Load() {
				write(rng)
				if rng.IntN(4) == 0 {
					runtime.Gosched()
				}
			}
		})
	}
	for end := time.Now().Add(long); time.Now().Before(end) && !t.Failed(); {
		time.Sleep(long / 20)
	}
	stop.Store(true)
	wg.Wait()
	if err := d.Close(context.Background()); err != nil {
		t.Error(err)
	}
	l.Check()
	if len(free)+l.Len() != len(things) {
		t.Errorf("%d things are free and %d in the List, of %d", len(free), l.Len(), len(things))
	}
	t.Logf("%d walks found %d things; %d grace periods", walks.Load(), seen.Load(), d.Stats().GracePeriods)
}
