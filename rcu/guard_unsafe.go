package rcu

// This file uses unsafe to get from a part of a Domain to the Domain, and from the first word of a phase to the
// phase.

import (
	"runtime"
	"sync/atomic"
	"unsafe"

	"github.com/quiesce-go/quiesce/asm"
)

// A phase counts sections that began in it and have no word. There are two to a Domain, and new ones take
// the current one.
type phase struct {
	mark      int64         // counted. It is what a Guard without a word points to, and must be first
	asm.Block               // the words begins and ends
	edge      atomic.Uint64 // race builds: changes before ends do
	hurry     atomic.Bool   // who ends a section makes way; diverts the Adds
	of        *phase        // the phase that this one stands for, see newTicket; else nil
}

// guards is what a Domain has for them.
type guards struct {
	// words show what the records of Readers show: the Domain's number as of the ReadLock of the Guard that
	// has the word, or 0. hurry may add hurried to the number.
	words   asm.Claims
	opened  atomic.Bool // words may be claimed, or could be once
	crowded atomic.Bool // none is to be, until a grace period has ended: see openWords. Orders nothing

	now    unsafe.Pointer // the element of phases that new Guards take; changes under gp.mu. See also newTicket
	phases [2]phase
}

const (
	hurried = -1 << 63
	counted = -1 // unlike a number with hurried
)

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
// Each Domain has eight words on each CPU. A Guard gets one that is free where it begins, by a restartable sequence,
// and is to the Domain what a [Reader] is. Where none is free, and where there are no restartable sequences, it is
// counted, in the design of sleepable RCU (McKenney, "Sleepable Read-Copy Update", 2006, and in Linux since): per-CPU
// counts of the sections begun and ended, in two phases.
type Guard struct {
	word *int64 // or the mark of a phase
}

// ReadLock begins a section and returns the Guard that ends it. Any goroutine may call
// it, without preparation. It takes about 2 ns, and two to three times that where it is counted, never blocks and does
// not allocate. It panics if d is closed.
func (d *Domain) ReadLock() Guard {
	// Pairs with the scan in beginLocked, through the Fence there: of the two, this thread's loads
	// after the Claim see what was unpublished, or the scan sees the number. The load pairs with the
	// Add in beginLocked, as in Reader.Lock.
	return Guard{d.guards.words.Claim(int64(atomic.LoadUint64(&d.number)), readLockSlow)}
}

// readLockSlow is ReadLock of the Domain that has these words, where none can be claimed. n is what would have
// been shown.
func readLockSlow(words *asm.Claims, n int64) *int64 {
	d := domainOf(words)
	if !d.guards.crowded.Load() && d.openWords() {
		return words.Claim(n, readLockCounted)
	}
	return readLockCounted(words, n)
}

// readLockCounted is readLockSlow that does not try again.
func readLockCounted(words *asm.Claims, _ int64) *int64 {
	d := domainOf(words)
	p := (*phase)(atomic.LoadPointer(&d.guards.now))
	// Pairs with the sums in drained, through the Fence in beginLocked, as the Claim does with the scan.
	p.Add(begins, 1)
	return &p.mark
}

// domainOf returns the Domain that has these words.
func domainOf(words *asm.Claims) *Domain {
	const at = unsafe.Offsetof(Domain{}.guards) + unsafe.Offsetof(guards{}.words)
	return (*Domain)(unsafe.Add(unsafe.Pointer(words), -int(at)))
}

// Unlock ends the section. What was done in it is ordered before the end of every grace
// period that waited for it. It takes about half a nanosecond, and about 3 where the section is counted. It panics if g
// is zero. A second Unlock of a section panics, or makes a grace period end too early, or panic.
func (g Guard) Unlock() {
	if g.word != nil && atomic.LoadInt64(g.word) > 0 { // Orders nothing: what is there is this section's own, or hurry's.
		asm.StoreRelease(g.word, 0) // Pairs with the load in passedWord.
	} else {
		g.unlockSlow()
	}
}

// unlockSlow is Unlock of a Guard that is counted, and of one that is to make way.
//
//go:noinline
func (g Guard) unlockSlow() {
	if g.word == nil {
		panic("rcu: Unlock of a zero Guard")
	}
	switch atomic.LoadInt64(g.word) {
	case counted:
	case 0:
		panic(unlockedTwice)
	default:
		asm.StoreRelease(g.word, 0) // As in Unlock.
		runtime.Gosched()           // The grace period that marked the word waits for a processor.
		return
	}
	p := (*phase)(unsafe.Pointer(g.word))
	if raceEnabled && mutant != mutantNoEdge {
		p.edge.Add(1) // The race detector does not see the words. Pairs with pollLocked.
	}
	p.Add(ends, 1) // Pairs with the sums in drained.
}

const unlockedTwice = "rcu: Unlock of a Guard that was unlocked already"

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
