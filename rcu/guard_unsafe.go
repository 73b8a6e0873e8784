package rcu

// This file uses unsafe to load a pointer by atomic.LoadPointer, since ReadLock with an
// atomic.Pointer is one too many for the inliner: a Load of that counts as 13 of the 80 that a
// function may have, of which the call of the assembly takes 62.

import (
	"sync/atomic"
	"unsafe"

	"github.com/quiesce-go/quiesce/asm"
)

// A phase counts sections that began in it. There are two to a Domain, and new Guards take the
// current one.
type phase struct {
	asm.Block               // the words begins and ends
	edge      atomic.Uint64 // race builds: changes before ends do
	hurry     atomic.Bool   // who ends a section makes way; diverts the Adds
	of        *phase        // the phase that this one stands for, see newTicket; else nil
}

// guards is what a Domain has for them.
type guards struct {
	now    unsafe.Pointer // the element of phases that new Guards take; changes under gp.mu. See also newTicket
	phases [2]phase
}

// The words of a phase.
const (
	begins = iota
	ends
	phaseWords
)

// A Guard is an open section of a [Domain], begun by [Domain.ReadLock]. It is a
// small value, may be copied and handed to other goroutines, and Unlock must be called
// exactly once, on one of the copies, by any goroutine. The zero Guard holds no section. One that
// is dropped holds up grace periods for ever, which [WithDebug] reports.
//
// The design is that of sleepable RCU (McKenney, "Sleepable Read-Copy Update", 2006,
// and in Linux since): per-CPU counts of the sections begun and ended, in two phases.
type Guard struct{ p *phase }

// ReadLock begins a section and returns the Guard that ends it. Any goroutine may call
// it, without preparation. It adds to a counter of this CPU, about 3 ns, never blocks
// and does not allocate. It panics if d is closed.
func (d *Domain) ReadLock() (g Guard) {
	g.p = (*phase)(atomic.LoadPointer(&d.guards.now))
	// Pairs with the sums in drained, through the Fence in beginLocked: of the two, this
	// thread's loads after the Add see what was unpublished, or the sum sees the Add.
	g.p.Add(begins, 1)
	return
}

// Unlock ends the section. What was done in it is ordered before the end of every grace
// period that waited for it. It costs what ReadLock does. It panics if g is zero. A second Unlock
// of a section makes a grace period end too early, or panic, if it notices.
func (g Guard) Unlock() {
	p := g.p
	if p == nil {
		p = noPhase
	}
	if raceEnabled && mutant != mutantNoEdge {
		p.edge.Add(1) // The race detector does not see the words. Pairs with pollLocked.
	}
	p.Add(ends, 1) // Pairs with the sums in drained.
}

// noPhase is what zero Guards unlock. It is set by the first New.
var noPhase *phase

// Read runs fn in a section of d. The section ends when fn returns, panics, or calls
// [runtime.Goexit]. fn may begin other sections.
func (d *Domain) Read(fn func()) {
	defer d.ReadLock().Unlock()
	fn()
}

// current returns the phase that new Guards take, and the other one.
func (d *Domain) current() (cur, idle *phase) {
	cur = (*phase)(atomic.LoadPointer(&d.guards.now))
	if cur.of != nil {
		cur = cur.of
	}
	if cur == &d.guards.phases[0] {
		return cur, &d.guards.phases[1]
	}
	return cur, &d.guards.phases[0]
}

// setCurrent makes p the phase that new Guards take.
func (d *Domain) setCurrent(p *phase) {
	if d.debug != nil {
		p = d.newTicket(p)
	}
	atomic.StorePointer(&d.guards.now, unsafe.Pointer(p))
}

// replaceTicket has later Guards take another ticket than t, if nobody has seen to that.
func (d *Domain) replaceTicket(t *phase) {
	if atomic.LoadPointer(&d.guards.now) == unsafe.Pointer(t) {
		atomic.CompareAndSwapPointer(&d.guards.now, unsafe.Pointer(t), unsafe.Pointer(d.newTicket(t.of)))
	}
}
