package rcutest

import (
	"math"
	"math/rand/v2"
	"os"
	"runtime"
	"sync"
	"time"

	"github.com/quiesce-go/quiesce/rcu"
)

// A reader finds Objects in sections. It goes through lives, in each of which it has another kind of
// section and other habits.
type reader struct {
	worker
	pcg   rand.PCG
	rng   *rand.Rand // of one life
	visit func(*Object)
	held  []sighting // what the section has found

	// Counted here and added to the torture's once in a while: no atomic operation, which is a fence, may
	// come between the begin of a section and what it finds.
	sections uint64
	ages     [maxAge + 1]uint64

	// The kind of section of this life.
	r *rcu.Reader // nil for Guards
	g rcu.Guard
}

// A sighting is an Object as it was when it was found.
type sighting struct {
	o     *Object
	stamp uint64
}

// prepare makes r ready for lives.
func (r *reader) prepare() {
	r.rng = rand.New(&r.pcg)
	r.visit = r.sight
}

func (r *reader) run() {
	r.prepare()
	for !r.t.stop.Load() {
		r.pcg.Seed(r.choose.Uint64(), 0)
		r.begin(nothing)
		r.t.gate.RLock()
		r.live(r.t.kind(r.rng), r.habit())
		r.t.gate.RUnlock()
	}
	r.begin(nothing)
}

// habit chooses what fills a life.
func (r *reader) habit() func(*reader) {
	switch n := r.rng.IntN(32); {
	case n < 3:
		return (*reader).sleepy
	case n < 4:
		return (*reader).stream
	case n < 5:
		return (*reader).crowd
	case n < 9:
		return (*reader).hesitant
	case n < 16:
		return (*reader).busy
	}
	return (*reader).brisk
}

// kind chooses one kind of section.
func (t *torture) kind(rng *rand.Rand) Kind {
	if k := t.cfg.Kinds; k != BothKinds {
		return k
	}
	return 1 + Kind(rng.IntN(2))
}

// live is one life.
func (r *reader) live(k Kind, habit func(*reader)) {
	r.begin("NewReader")
	if k == Readers {
		r.r = r.t.d.NewReader()
	}
	habit(r)
	if r.r != nil && r.rng.IntN(4) > 0 {
		r.r.Close() // else it is left to the collector
	}
	r.r = nil
	r.flush()
}

func (r *reader) flush() {
	r.t.sections.Add(r.sections)
	r.sections = 0
	for i := range r.ages {
		r.t.ages[i].Add(r.ages[i])
		r.ages[i] = 0
	}
}

func (r *reader) lock() {
	if r.r != nil {
		r.r.Lock()
	} else {
		r.g = r.t.d.ReadLock()
	}
}

func (r *reader) unlock() {
	r.check()
	r.sections++
	r.held = r.held[:0]
	if r.r != nil {
		r.r.Unlock()
	} else {
		r.g.Unlock()
	}
}

// sight notes that the section has found o.
func (r *reader) sight(o *Object) {
	stamp := stampOf(o)
	if stamp == 0 {
		r.t.fail("a section found an object of age %d that is not ready", o.age.Load())
	}
	r.held = append(r.held, sighting{o, stamp})
}

// check looks at all that the section holds.
func (r *reader) check() {
	for _, h := range r.held {
		r.ages[r.t.look(h)]++
	}
}

// look looks at an Object that a section holds, and returns its age.
func (t *torture) look(h sighting) int {
	age := int(h.o.age.Load())
	if age > 1 {
		t.fail("a section holds an object that was taken out %d grace periods ago", age-1)
	} else if now := stampOf(h.o); now != h.stamp {
		t.fail("an object changed from %d to %d in a section that holds it", h.stamp, now)
	}
	return min(age, maxAge)
}

// brisk has many short sections and does little else.
func (r *reader) brisk() {
	rng := r.rng
	for range rng.IntN(2000) {
		if r.t.stop.Load() {
			return
		}
		r.begin("a short section")
		n := 1 << rng.IntN(11)
		if rng.IntN(2) == 0 {
			r.dirty()
		}
		r.lock()
		r.t.s.Find(rng, r.visit)
		for _, h := range r.held {
			for range n {
				stampOf(h.o)
			}
		}
		r.unlock()
		if rng.IntN(64) == 0 {
			runtime.Gosched()
		}
	}
}

// hesitant begins sections again and again, until updates happen while it begins one, so that this goroutine
// must have been stopped there. What it announces is old then, so it stays in that section.
func (r *reader) hesitant() {
	t := r.t
	for n := range r.rng.IntN(20_000) {
		if n%64 == 0 {
			if r.begin("short sections"); t.stop.Load() {
				return
			}
		}
		before := t.retired.Load()
		r.lock()
		if t.retired.Load() < before+2 {
			r.unlock()
			continue
		}
		r.begin("a section that began late")
		for range 1 + r.rng.IntN(4) {
			for range 4 {
				t.s.Find(r.rng, r.visit)
			}
			time.Sleep(r.nap(time.Millisecond))
			r.check()
		}
		r.unlock()
	}
}

// busy has sections of all sorts.
func (r *reader) busy() {
	for range r.rng.IntN(200) {
		if r.t.stop.Load() {
			return
		}
		r.begin("a section")
		r.lock()
		r.t.s.Find(r.rng, r.visit)
		r.pause()
		r.twist()
		r.unlock()
	}
}

// pause spends some time in a section.
func (r *reader) pause() {
	rng := r.rng
	switch n := rng.IntN(64); {
	case n == 0:
		time.Sleep(r.nap(100 * time.Microsecond))
	case n < 8:
		runtime.Gosched()
	case n < 12:
		c := make(chan int)
		go func() { c <- 1 }()
		<-c
	case n < 16:
		os.Getppid() // a system call
	default:
		for range n * 4 {
			stampOf(&r.t.idle)
		}
	}
	r.check()
}

// nap returns a time of up to longest, short ones as often as ones twice as long, or 0 if nobody may sleep.
func (r *reader) nap(longest time.Duration) time.Duration {
	longest = min(longest, r.t.cfg.LongestSleep)
	if longest <= 0 {
		return 0
	}
	return time.Duration(math.Exp(r.rng.Float64() * math.Log(float64(longest))))
}

// twist does in a section what only some sections do.
func (r *reader) twist() {
	t, rng := r.t, r.rng
	switch rng.IntN(8) {
	case 0: // A section in it.
		r.nest()
	case 1: // Another section, which overlaps with this one.
		if r.r != nil {
			r.check()
			r.held = r.held[:0]
			r.r.Refresh()
			t.s.Find(rng, r.visit)
			r.pause()
			return
		}
		g := t.d.ReadLock()
		r.unlock()
		r.g = g
		t.s.Find(rng, r.visit)
		r.pause()
	case 2: // Another reader comes and goes, while a grace period waits for this one.
		other := t.d.NewReader()
		other.Lock()
		t.s.Find(rng, r.visit)
		r.pause()
		r.check()
		r.held = r.held[:0] // what was found in its section
		other.Unlock()
		other.Close()
		t.s.Find(rng, r.visit)
	case 3: // A function panics in a section of its own.
		func() {
			defer func() { recover() }()
			t.d.Read(func() {
				t.s.Find(rng, r.visit)
				panic("an ordinary panic")
			})
		}()
		r.check()
	case 4: // The section ends in another goroutine.
		if r.r != nil {
			r.nest()
			return
		}
		g, held := r.g, append([]sighting(nil), r.held...)
		select {
		case t.finish <- func() {
			for _, h := range held {
				t.ages[t.look(h)].Add(1)
			}
			g.Unlock()
		}:
			r.held = r.held[:0]
			r.lock()
			t.s.Find(rng, r.visit)
		default:
		}
	case 5: // What never waits for a grace period is used while one may wait for this section.
		t.d.Call(func() {})
		t.d.Poll(t.d.StartPoll())
		r.pause()
	}
}

// nest has a section in the section, or so many that a CPU has not enough words for them.
func (r *reader) nest() {
	var inner []interface{ Unlock() }
	for range 1 + r.rng.IntN(8)/7*10 {
		if r.r != nil {
			r.r.Lock()
			inner = append(inner, r.r)
		} else {
			inner = append(inner, r.t.d.ReadLock())
		}
	}
	r.t.s.Find(r.rng, r.visit)
	r.pause()
	for _, s := range inner {
		s.Unlock()
	}
	r.pause()
}

// sleepy has few sections, and sleeps in them.
func (r *reader) sleepy() {
	for range r.rng.IntN(4) {
		if r.t.stop.Load() {
			return
		}
		r.begin("a section that sleeps")
		r.lock()
		r.t.s.Find(r.rng, r.visit)
		time.Sleep(r.nap(r.t.cfg.LongestSleep))
		if r.rng.IntN(2) == 0 {
			r.nest()
		} else {
			r.twist()
		}
		time.Sleep(r.nap(r.t.cfg.LongestSleep))
		r.unlock()
	}
}

// stream is always in a section, until a grace period has ended nevertheless.
func (r *reader) stream() {
	t := r.t
	c := t.d.StartPoll()
	r.begin("a stream of sections, until a grace period ends")
	r.lock()
	for n := 0; !t.d.Poll(c) && !t.stop.Load(); n++ {
		t.s.Find(r.rng, r.visit)
		r.check()
		r.held = r.held[:0]
		r.sections++
		if r.r != nil {
			r.r.Refresh()
		} else {
			g := t.d.ReadLock()
			r.g.Unlock()
			r.g = g
		}
		if n%16 == 0 {
			runtime.Gosched()
		}
	}
	r.unlock()
}

// crowd has goroutines come that have one section each, and threads that end with them.
func (r *reader) crowd() {
	var wg sync.WaitGroup
	r.begin("a crowd of short-lived readers")
	for range r.rng.IntN(32) {
		one := &reader{worker: worker{t: r.t, line: math.MaxInt}}
		one.pcg.Seed(r.rng.Uint64(), 0)
		one.prepare()
		if r.r != nil {
			one.r = r.t.d.NewReader()
		}
		wg.Go(func() {
			if one.rng.IntN(8) == 0 {
				runtime.LockOSThread() // never undone, so the thread ends with the goroutine
			}
			one.lock()
			one.t.s.Find(one.rng, one.visit)
			one.pause()
			one.unlock()
			if one.r != nil {
				one.r.Close()
			}
			one.flush()
		})
	}
	wg.Wait()
}
