package rcutest

import (
	"context"
	"errors"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quiesce-go/quiesce/rcu"
)

// A primitive is a way to wait for a grace period.
type primitive int

const (
	synchronize primitive = iota
	expedited
	wait      // for a Cookie
	impatient // with contexts that end too early
	poll
	call
	tryCall
	callHead
	retire
	goFunc
	barrier
	primitives
)

var primitiveNames = [primitives]string{
	synchronize: "Synchronize",
	expedited:   "SynchronizeExpedited",
	wait:        "Cookie+Wait",
	impatient:   "impatient Wait",
	poll:        "StartPoll+Poll",
	call:        "Call",
	tryCall:     "TryCall",
	callHead:    "CallHead",
	retire:      "Retire",
	goFunc:      "Go",
	barrier:     "Call+Barrier",
}

// blocks reports whether p may not be used in a callback.
func (p primitive) blocks() bool {
	switch p {
	case synchronize, expedited, wait, impatient, barrier:
		return true
	}
	return false
}

// flood is how many Objects may be on their way. It is more than what makes a Domain's worker hurry.
const flood = 20_000

// An updater takes Objects out of the Structure and has them wait for grace periods.
type updater struct {
	worker
	rng *rand.Rand // of one update
	out atomic.Int64
	old []polled // that wait for a Cookie, by age

	mu    sync.Mutex // protects inbox
	inbox []polled   // from callbacks, which could not go on themselves
}

// A polled Object waits for a grace period of which a Cookie was got, or is to begin its next wait if that
// is zero.
type polled struct {
	o *Object
	c rcu.Cookie
}

func (u *updater) run() {
	t := u.t
	pcg := new(rand.PCG)
	u.rng = rand.New(pcg)
	for n := 0; (t.cfg.Updates == 0 || n < t.cfg.Updates) && !t.stop.Load(); n++ {
		pcg.Seed(u.choose.Uint64(), 0)
		updates, draw := 1, draw
		if u.rng.IntN(256) == 0 {
			updates, draw = 1+u.rng.IntN(4000), drawBurst
		}
		u.begin(nothing)
		t.gate.RLock()
		for range updates {
			// The plan comes first, so that it does not depend on what the Structure finds.
			plan := draw(u.rng)
			for _, p := range plan.by[:plan.depth] {
				t.waits[p].Add(1)
			}
			u.dirty()
			if u.update(plan); t.stop.Load() {
				break
			}
		}
		t.gate.RUnlock()
		for range u.rng.IntN(200) {
			stampOf(&t.idle)
		}
		if u.rng.IntN(8) == 0 {
			runtime.Gosched()
		}
		u.tend()
		for u.begin("letting others free"); t.retired.Load()-t.freed.Load() > flood && !t.stop.Load(); {
			u.tend()
			time.Sleep(50 * time.Microsecond)
		}
	}
	u.begin("waiting until what it took out is freed")
	for u.out.Load() > 0 && t.ctx.Err() == nil {
		u.tend()
		old := u.old
		u.old = nil
		for _, p := range old {
			u.pass(p.o, t.d.Wait(t.ctx, p.c))
			u.next(p.o, here)
		}
		time.Sleep(50 * time.Microsecond)
	}
	u.begin(nothing)
}

// draw returns a plan.
func draw(rng *rand.Rand) (p plan) {
	p.depth = max(1, rng.IntN(2*pipe)-pipe+1) // mostly 1
	p.odd = rng.IntN(odds)
	for i := range p.depth {
		p.by[i] = primitive(rng.IntN(int(primitives)))
	}
	return p
}

// drawBurst returns a plan that keeps nobody waiting.
func drawBurst(rng *rand.Rand) plan {
	by := [...]primitive{call, tryCall, callHead, retire}
	return plan{depth: 1, by: [pipe]primitive{by[rng.IntN(len(by))]}, odd: rng.IntN(odds)}
}

// update takes an Object out and has it go through p.
func (u *updater) update(p plan) {
	t := u.t
	u.begin("Exchange")
	if o := t.s.Exchange(u.rng, t.pool.get()); u.take(o, p) {
		u.next(o, here)
	}
}

// take notes that o, if it is not nil, was taken out, to go through p. It reports whether it may.
func (u *updater) take(o *Object, p plan) bool {
	if o == nil {
		return false
	}
	if !o.age.CompareAndSwap(0, 1) {
		u.t.fail("Exchange returned an object that was taken out already")
		return false
	}
	u.t.retired.Add(1)
	u.out.Add(1)
	o.owner, o.plan = u, p
	return true
}

// tend looks after Objects that wait for this updater.
func (u *updater) tend() {
	u.mu.Lock()
	inbox := u.inbox
	u.inbox = nil
	u.mu.Unlock()
	for _, p := range inbox {
		if p.c == (rcu.Cookie{}) {
			u.next(p.o, here)
		} else {
			u.old = append(u.old, p)
		}
	}
	for len(u.old) > 0 && u.t.d.Poll(u.old[0].c) {
		o := u.old[0].o
		u.old = u.old[1:]
		u.pass(o, nil)
		u.next(o, here)
	}
}

func (u *updater) hand(p polled) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.inbox = append(u.inbox, p)
}

// A place is where next is called.
type place int

const (
	here       place = iota // in the updater
	inGo                    // in a goroutine of its own
	inCallback              // where nothing may wait
)

// pass notes that a grace period has ended for o, unless err says that it has not.
func (u *updater) pass(o *Object, err error) {
	if err != nil {
		if u.t.ctx.Err() == nil {
			u.t.fail("a wait by %s: %v", primitiveNames[o.plan.by[o.stage]], err)
		}
		return
	}
	o.stage++
	if !o.age.CompareAndSwap(int32(o.stage), int32(o.stage+1)) {
		u.t.fail("a grace period of an object ended twice, by %s", primitiveNames[o.plan.by[o.stage-1]])
	}
	o.stamp = 0
}

// next has o wait for its next grace period, or frees it after the last.
func (u *updater) next(o *Object, in place) {
	t, d := u.t, u.t.d
	for o.stage < o.plan.depth {
		if t.ctx.Err() != nil {
			return // It was given up, and so is o. Whose Domain it is may close it.
		}
		p := o.plan.by[o.stage]
		if in == inCallback && p.blocks() {
			u.hand(polled{o: o})
			return
		}
		if in == here {
			u.begin(primitiveNames[p])
		}
		ended := func(in place) {
			u.pass(o, nil)
			u.next(o, in)
		}
		switch p {
		case synchronize:
			u.pass(o, d.Synchronize(t.ctx))
		case expedited:
			u.pass(o, d.SynchronizeExpedited(t.ctx))
		case wait:
			u.pass(o, d.Wait(t.ctx, d.Cookie()))
		case impatient:
			u.pass(o, u.impatient(d.Cookie()))
		case barrier:
			ran := false
			d.Call(func() { ran = true })
			err := d.Barrier(t.ctx)
			if err == nil && !ran {
				t.fail("Barrier returned before a callback had run")
			}
			u.pass(o, err)
		case poll:
			c := d.StartPoll()
			if in == here {
				u.old = append(u.old, polled{o, c})
			} else {
				u.hand(polled{o, c})
			}
			return
		case call:
			odd := o.plan.odd
			t.aloft.Add(1)
			d.Call(func() {
				defer t.aloft.Add(-1)
				if odd == oddDeadlock {
					if err := d.Barrier(t.ctx); !errors.Is(err, rcu.ErrDeadlock) {
						t.fail("Barrier in a callback returned %v", err)
					}
				}
				ended(inCallback)
				if odd == oddExit {
					runtime.Goexit()
				}
			})
			return
		case tryCall:
			t.aloft.Add(1)
			err := d.TryCall(func() {
				defer t.aloft.Add(-1)
				ended(inCallback)
			})
			if err != nil {
				t.aloft.Add(-1)
			}
			if errors.Is(err, rcu.ErrBusy) {
				o.plan.by[o.stage] = poll
				continue
			}
			if err != nil {
				t.fail("%v", err)
			}
			return
		case callHead:
			t.aloft.Add(1)
			d.CallHead(&o.head, calledHead)
			return
		case retire:
			t.aloft.Add(1)
			rcu.Retire(d, o, retired)
			return
		case goFunc:
			t.aloft.Add(1)
			d.Go(func() {
				defer t.aloft.Add(-1)
				ended(inGo)
			})
			return
		}
	}
	t.pool.put(o)
	t.freed.Add(1)
	u.out.Add(-1)
}

func retired(o *Object) {
	defer o.owner.t.aloft.Add(-1)
	o.owner.pass(o, nil)
	o.owner.next(o, inCallback)
}

// impatient waits for c with contexts that end after at most 200 us.
func (u *updater) impatient(c rcu.Cookie) error {
	for us := 0; ; us = (us + 70) % 200 {
		ctx, cancel := context.WithTimeout(u.t.ctx, time.Duration(us)*time.Microsecond)
		err := u.t.d.Wait(ctx, c)
		cancel()
		if !errors.Is(err, context.DeadlineExceeded) || u.t.ctx.Err() != nil {
			return err
		}
	}
}
