package percpu

import (
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/quiesce-go/quiesce/internal/storm"
	"github.com/quiesce-go/quiesce/internal/tier"
)

// inStorm runs f once in each tier that works here, while a storm blows and threads
// that run one come and go.
func inStorm(t *testing.T, f func(t *testing.T, blow func(one func()) (calm func()))) {
	for _, want := range []tier.Tier{tier.RSEQ, tier.Pinned, tier.Shared} {
		t.Run("tier="+want.String(), func(t *testing.T) {
			now, undo := tier.Switch(want)
			defer undo()
			if now != want {
				t.Skipf("the %v tier does not work here, the %v one does", want, now)
			}
			f(t, func(one func()) func() { return storm.Start(t, storm.Threads(one)) })
		})
	}
}

// work runs one, about n times in all, in several goroutines.
func work(n int, one func(rng *rand.Rand)) {
	const goroutines = 8
	n = storm.Size(n) / goroutines
	var wg sync.WaitGroup
	for g := range uint64(goroutines) {
		rng := rand.New(rand.NewPCG(rand.Uint64(), g))
		wg.Go(func() {
			for i := range n {
				one(rng)
				if i%4096 == 0 {
					runtime.Gosched()
				}
			}
		})
	}
	wg.Wait()
}

// TestStormLocal: nobody else has the T, and no update is lost. Twin: nolock.
func TestStormLocal(t *testing.T) {
	inStorm(t, func(t *testing.T, blow func(func()) func()) {
		l := NewLocal[localThing](nil)
		var did, twice atomic.Int64
		one := func() {
			l.Do(func(v *localThing) {
				if v.inUse {
					twice.Add(1)
				}
				v.inUse = true
				v.n++
				v.inUse = false
			})
			did.Add(1)
		}
		calm := blow(one)
		work(2_000_000, func(rng *rand.Rand) {
			if one(); rng.IntN(5000) == 0 {
				l.Do(func(v *localThing) {
					v.inUse = true
					runtime.Gosched()
					v.inUse = false
				})
			}
		})
		calm()
		sum := int64(0)
		for _, v := range l.All() {
			sum += int64(v.n)
		}
		if sum != did.Load() || twice.Load() != 0 {
			t.Errorf("%d updates were counted as %d; lent twice %d times", did.Load(), sum, twice.Load())
		}
	})
}

// TestStormRWMutex: no writer beside anybody. Twin: nolook.
func TestStormRWMutex(t *testing.T) {
	inStorm(t, func(t *testing.T, blow func(func()) func()) {
		var (
			rw     RWMutex
			a, b   int
			broken atomic.Int64
			writes atomic.Int64
		)
		read := func() {
			rw.RLock()
			if a != b {
				broken.Add(1)
			}
			rw.RUnlock()
		}
		calm := blow(read)
		work(1_000_000, func(rng *rand.Rand) {
			if rng.IntN(500) > 0 {
				read()
				return
			}
			rw.Lock()
			a++
			if rng.IntN(8) == 0 {
				runtime.Gosched()
			}
			b++
			rw.Unlock()
			writes.Add(1)
		})
		calm()
		rw.Lock()
		defer rw.Unlock()
		if broken.Load() != 0 || int64(a) != writes.Load() || a != b {
			t.Errorf("%d readers beside a writer; %d writes were counted as %d and %d", broken.Load(), writes.Load(), a, b)
		}
	})
}

// TestStormRef: the release comes once, after the last Put. Twin: nofence.
func TestStormRef(t *testing.T) {
	inStorm(t, func(t *testing.T, blow func(func()) func()) {
		type thing struct {
			*Ref
			gone atomic.Bool
		}
		var cur atomic.Pointer[thing]
		var made, released, early atomic.Int64
		next := func() {
			x := new(thing)
			x.Ref = NewRef(func() {
				if x.gone.Swap(true) {
					early.Add(1)
				}
				released.Add(1)
			})
			made.Add(1)
			if old := cur.Swap(x); old != nil {
				old.Kill()
			}
		}
		next()
		use := func() {
			if x := cur.Load(); x.TryGet() {
				x.Get()
				x.Put()
				if x.gone.Load() {
					early.Add(1)
				}
				x.Put()
			}
		}
		calm := blow(use)
		work(1_000_000, func(rng *rand.Rand) {
			if use(); rng.IntN(50) == 0 {
				next()
			}
		})
		calm()
		cur.Load().Kill()
		if made.Load() != released.Load() || early.Load() != 0 {
			t.Errorf("%d were made, %d released, %d early or twice", made.Load(), released.Load(), early.Load())
		}
	})
}

// TestStormBatchCounter: the sum is exact, and the limit is kept. Twin: lostrest.
func TestStormBatchCounter(t *testing.T) {
	inStorm(t, func(t *testing.T, blow func(func()) func()) {
		c := NewBatchCounter(48)
		var did, over atomic.Int64
		const limit = 1 << 40
		one := func() {
			c.Add(3)
			did.Add(3)
		}
		calm := blow(one)
		work(2_000_000, func(rng *rand.Rand) {
			d := rng.Int64N(40) - 10
			if rng.IntN(4) == 0 {
				if c.TryAdd(limit, d) {
					did.Add(d)
				}
			} else {
				c.Add(d)
				did.Add(d)
			}
			if rng.IntN(256) == 0 && c.TryAdd(0, limit) { // the total is far above 0
				over.Add(1)
			}
		})
		calm()
		if c.Sum() != did.Load() || over.Load() != 0 {
			t.Errorf("%d is counted as %d; %d passed a limit", did.Load(), c.Sum(), over.Load())
		}
	})
}
