package rcutest

import (
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

const (
	duelTime = 30 * time.Millisecond
	duelRest = 50 * time.Millisecond
	duelsRow = 4 // without a rest, since it takes a while until all others have stopped
)

// duels has one updater and two readers work with all others stopped, now and then. Then grace periods
// come as fast as they can, and all that the updater does in most is to make sure that there is nobody to wait
// for.
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
		for range duelsRow {
			pcg.Seed(u.choose.Uint64(), 0)
			for _, r := range rivals {
				r.pcg.Seed(r.choose.Uint64(), 0)
			}
			duel := u.meet
			if u.rng.IntN(2) == 0 {
				duel = u.jostle
			}
			if t.cfg.Storm { // which may have left one for all
				runtime.GOMAXPROCS(2 * runtime.NumCPU())
			}
			duel(rivals, u.rng.IntN(1024), time.Now().Add(duelTime))
			for _, r := range rivals {
				r.begin(nothing)
			}
		}
		t.gate.Unlock()
	}
	u.begin(nothing)
}

// swift is the plan of an update that waits for one grace period.
func swift(how primitive) plan { return plan{depth: 1, by: [pipe]primitive{how}, odd: odds} }

func (u *updater) dueling(end time.Time) bool { return time.Now().Before(end) && !u.t.stop.Load() }

// meet has an update and a section begin at the same moment on two CPUs, again and again. If a fence is missing,
// the section finds what the update takes out while what it announces itself by is still on its way.
func (u *updater) meet(rivals [2]*reader, cpu int, end time.Time) {
	var at struct { // what round each is in
		_       [128]byte
		reader  atomic.Uint64
		_       [128]byte
		updater atomic.Uint64 // 0 when it is over
		_       [128]byte
	}
	t := u.t
	kind := t.kind(u.rng)
	var wg sync.WaitGroup
	at.reader.Store(1)
	at.updater.Store(1)
	wg.Go(func() {
		pin(cpu)
		rivals[0].live(kind, func(r *reader) {
			for n := uint64(2); ; n++ {
				r.begin("a section that meets an update")
				long := r.rng.IntN(2048)
				at.reader.Store(n)
				if spin(&at.updater, n-1); at.updater.Load() == 0 {
					return
				}
				r.dirty()
				r.lock()
				for range 4 {
					t.s.Find(r.rng, r.visit)
				}
				for range long {
					stampOf(&t.idle)
				}
				if r.rng.IntN(8) == 0 {
					r.nest()
				}
				r.unlock()
			}
		})
	})
	wg.Go(func() {
		pin(cpu + 1)
		for n := uint64(2); u.dueling(end); n++ {
			u.begin("an update that meets a section")
			fresh, late := t.pool.get(), u.rng.IntN(256)
			spin(&at.reader, n-1)
			u.dirty()
			at.updater.Store(n)
			for range late {
				stampOf(&t.idle)
			}
			o := t.s.Exchange(u.rng, fresh)
			err := t.d.Synchronize(t.ctx) // and nothing in between, not even what take does
			if u.take(o, swift(synchronize)) {
				u.pass(o, err)
				u.next(o, here)
			}
		}
		at.updater.Store(0)
	})
	wg.Wait()
}

// spin waits until p is not n any more.
func spin(p *atomic.Uint64, n uint64) {
	for tries := 1; p.Load() == n; tries++ {
		if tries%(1<<14) == 0 {
			runtime.Gosched()
		}
	}
}

// jostle has a reader begin sections on the CPU that the updater needs, so that each is stopped where it happens to be
// while the other goes on, and many grace periods come and go before the reader does. Another reader
// has something to wait for in each.
func (u *updater) jostle(rivals [2]*reader, cpu int, end time.Time) {
	t := u.t
	kind := t.kind(u.rng)
	if t.cfg.Kinds&Guards != 0 && u.rng.IntN(2) == 0 {
		kind = Guards // which have more to be stopped in
	}
	var wg sync.WaitGroup
	var over atomic.Bool
	repeat := func(cpu int, f func()) {
		wg.Go(func() {
			pin(cpu)
			for !over.Load() {
				f()
			}
		})
	}
	repeat(cpu, func() { rivals[0].live(kind, (*reader).brisk) })
	repeat(cpu+1, func() { rivals[1].live(kind, (*reader).hesitant) })
	repeat(cpu+1, func() {
		for range 16 {
			u.update(swift(synchronize + primitive(u.rng.IntN(2)))) // or expedited
		}
		if !u.dueling(end) {
			over.Store(true)
		}
		if t.cfg.Storm { // It stops the world, and so the readers where they are.
			var stats runtime.MemStats
			runtime.ReadMemStats(&stats)
		}
	})
	wg.Wait()
}
