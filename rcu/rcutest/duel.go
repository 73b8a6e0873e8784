package rcutest

import (
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

const (
	duelTime = 20 * time.Millisecond
	duelRest = 50 * time.Millisecond
)

// duels has one updater and two readers work with all others stopped, now and then. Then grace periods
// come as fast as they can, and all that the updater does in most is to make sure that there is nobody to wait
// for. If a fence is missing, this is where it misses somebody. If a reader is stopped, by the scheduler
// or the system, many grace periods come and go before it runs again.
func (u *updater) duels(rivals [2]*reader) {
	t := u.t
	pcg := new(rand.PCG)
	u.rng = rand.New(pcg)
	for _, r := range rivals {
		r.prepare()
	}
	for !t.stop.Load() {
		u.begin(nothing)
		select {
		case <-t.stopped:
		case <-time.After(duelRest):
		}
		t.gate.Lock()
		pcg.Seed(u.choose.Uint64(), 0)
		u.duel(rivals)
		t.gate.Unlock()
	}
	u.begin(nothing)
}

func (u *updater) duel(rivals [2]*reader) {
	t := u.t
	var wg sync.WaitGroup
	var over atomic.Bool
	repeat := func(f func()) {
		wg.Go(func() {
			for !over.Load() {
				f()
			}
		})
	}
	kind := t.kind(u.rng)
	three := u.rng.IntN(2) == 0
	if three && t.cfg.Kinds&Guards != 0 && u.rng.IntN(2) == 0 {
		kind = Guards // which have more to be stopped in
	}
	for _, r := range rivals {
		r.pcg.Seed(r.choose.Uint64(), 0)
	}
	repeat(func() { rivals[0].live(kind, (*reader).brisk) })
	if three {
		repeat(func() { rivals[1].live(kind, (*reader).hesitant) })
	}
	for end := time.Now().Add(duelTime); time.Now().Before(end) && !t.stop.Load(); {
		for range 16 {
			how := synchronize + primitive(u.rng.IntN(2)) // or expedited
			u.update(plan{depth: 1, by: [pipe]primitive{how}, odd: odds})
		}
		if three && t.cfg.Storm { // It stops the world, and so the readers where they are.
			var stats runtime.MemStats
			runtime.ReadMemStats(&stats)
		}
	}
	over.Store(true)
	wg.Wait()
	for _, r := range rivals {
		r.begin(nothing)
	}
}
