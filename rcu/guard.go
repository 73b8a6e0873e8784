package rcu

import (
	"sync/atomic"

	"github.com/quiesce-go/quiesce/asm"
)

// newGuards prepares d for Guards.
func (d *Domain) newGuards() {
	d.guards.words.Make()
	for i := range d.guards.phases {
		p := &d.guards.phases[i]
		p.mark = counted
		p.Alloc(phaseWords)
	}
	d.setCurrent(&d.guards.phases[0])
	d.divert()
}

// openWords has d's Guards claim words from its first section on. When it is called later and this CPU has not enough
// of them, it has Guards be counted until a grace period has ended: to look for a word and find none costs more. It
// reports whether it is worth another try: the first one of a thread fails, and Full sees to it that the next need not.
func (d *Domain) openWords() bool {
	d.mustBeMade()
	g := &d.guards
	if d.wordless {
		return false
	}
	if !g.opened.Load() && !g.opened.Swap(true) { // Pairs with the load in allWords: it is before the first Claim.
		d.divert()
	}
	if g.words.Full() {
		// A section waits for nobody, so this is not divert, and in this order: beside one that opens the words they
		// may stay open until another grace period has ended, but not shut.
		g.words.Shut()
		g.crowded.Store(true)
		return false
	}
	return true
}

// divert has the Guards' Claims and Adds take the fast path or the slow one, as d's state asks for.
func (d *Domain) divert() {
	d.divertMu.Lock()
	defer d.divertMu.Unlock()
	open := !d.isClosed()
	if open && d.guards.opened.Load() && !d.guards.crowded.Load() {
		d.guards.words.Open()
	} else {
		d.guards.words.Shut()
	}
	fast := open && d.guarded.Load() && !d.slowReaders
	for i := range d.guards.phases {
		p := &d.guards.phases[i]
		if fast && !p.hurry.Load() {
			p.Divert(nil)
			continue
		}
		p.Divert(func(i int, delta int64) { d.guardSlow(p, i, delta) })
	}
}

// guardSlow is the Add of Guards before the first section that is counted, in a Domain that has to use fences
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

// allWords calls yield with each word that a Guard may have.
func (g *guards) allWords(yield func(*int64) bool) {
	if !g.opened.Load() { // Pairs with the Swap in openWords.
		return
	}
	for col := range asm.Columns() {
		for i := range asm.ClaimWords {
			if mutant == mutantSkipSlot && i == 0 {
				continue
			}
			if !yield(g.words.Word(col, i)) {
				return
			}
		}
	}
}

// passedWord reports whether a word is not of a Guard that grace period n has to wait for. Pairs with the Claim, and
// with the StoreRelease in Unlock.
func passedWord(word *int64, n uint64) bool {
	seen := uint64(atomic.LoadInt64(word) &^ hurried)
	return seen == 0 || seen >= n
}

// drained reports whether p has no Guard that the grace period in progress has to wait
// for (F4).
func (p *phase) drained() bool {
	e := p.Sum(ends)
	b := p.Sum(begins)
	if e-b > 0 {
		panic(unlockedTwice)
	}
	return e == b
}
