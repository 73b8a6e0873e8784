package rcu

import "sync"

// newGuards prepares d for Guards.
func (d *Domain) newGuards() {
	zeroGuards()
	for i := range d.guards.phases {
		d.guards.phases[i].Alloc(phaseWords)
	}
	d.setCurrent(&d.guards.phases[0])
	d.divert()
}

// zeroGuards has zero Guards panic.
var zeroGuards = sync.OnceFunc(func() {
	p := new(phase)
	p.Alloc(phaseWords)
	p.Divert(func(int, int64) { panic("rcu: Unlock of a zero Guard") })
	noPhase = p
})

// divert has the Guards' Adds take the fast path or the slow one, as d's state asks for.
func (d *Domain) divert() {
	d.divertMu.Lock()
	defer d.divertMu.Unlock()
	fast := d.guarded.Load() && !d.slowReaders && !d.isClosed()
	for i := range d.guards.phases {
		p := &d.guards.phases[i]
		if fast && !p.hurry.Load() {
			p.Divert(nil)
			continue
		}
		p.Divert(func(i int, delta int64) { d.guardSlow(p, i, delta) })
	}
}

// guardSlow is the Add of Guards before the first section, in a Domain that has to use fences
// or hooks, in a closed one, and when a grace period is in a hurry.
func (d *Domain) guardSlow(p *phase, i int, delta int64) {
	if i == begins {
		d.mustBeOpen("ReadLock")
		d.hook(hookLoaded)
		if !d.guarded.Swap(true) { // Pairs with the load in beginLocked: it is before the first Add.
			d.divert()
		}
	}
	p.AddShared(i, delta) // a full barrier
	if i == ends && p.hurry.Load() {
		d.makeWay()
	}
}

// drained reports whether p has no Guard that the grace period in progress has to wait
// for (F4).
func (p *phase) drained() bool {
	e := p.Sum(ends)
	b := p.Sum(begins)
	if e-b > 0 {
		panic("rcu: Unlock of a Guard that was unlocked already")
	}
	return e == b
}
