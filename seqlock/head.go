package seqlock

import (
	"reflect"
	"sync"
	"sync/atomic"
)

// head is the part of a Value that does not depend on T. T follows it.
//
// seq is a sequence counter and the writers' lock in one word:
//
//	bits 63-2  number of writes that are complete
//	bit 1      owned: somebody keeps writers out
//	bit 0      open: T is whole, readers may copy it
//
// Its states, and who may change them:
//
//	00  no operation has looked at T's type yet       anyone, to 01
//	01  at rest                                       anyone, to 11 or 10
//	11  owned, T is whole                             the owner, to 10 or 01
//	10  owned, T is being written                     the owner, to 01 or 11
//
// Facts, which the tests refer to:
//
//  1. T's words are written in state 10 only, by the owner, so by one goroutine.
//  2. The store that leaves state 10 raises the count and comes after T's words.
//  3. A reader copies in state 01 or 11 and then finds count and open as they
//     were. By 1 and 2, no word that it copied was written in between: a reader
//     that copied a word of a later write would find that write's state 10, or
//     a higher count. That owned may have changed does not matter.
//  4. By 3, a writer that gives up in state 11 disturbs no reader.
//  5. Nobody sleeps, and no user code runs, in state 10. In assembly not even
//     the scheduler can stop a goroutine there, only the kernel its thread.
type head struct {
	// mu is for writers that find seq owned: they sleep on it, and its holder
	// alone spins for seq. Update holds both for as long as its function runs,
	// a reader that needs several attempts owns seq only. Store takes seq
	// without mu when it is free: that saves a locked instruction out of two.
	mu sync.Mutex
	// waiting is the number of readers that wait for a write to end. A Store
	// after which there are any gives way to other goroutines. Without that, a
	// writer that never rests, and lost its processor in state 10, would leave
	// that state and be back in it before the reader gets to run.
	waiting atomic.Int32
	seq     atomic.Uint64
}

const (
	open       = 1
	owned      = 2
	states     = open | owned
	countShift = 2
	oneWrite   = 1 << countShift
)

// use checks, when h is used for the first time, that T may be in a Value.
// typ is a *T, of which only the type is looked at.
func (h *head) use(typ any) {
	if h.seq.Load() == 0 {
		mustHoldNoPointers("Value", reflect.TypeOf(typ).Elem())
		h.seq.CompareAndSwap(0, open)
	}
}

// lock takes mu and seq. It brings seq to state 11.
func (h *head) lock() {
	h.mu.Lock()
	for i := 0; !h.own(h.seq.Load()); i++ {
		relax(i) // For a Store or a reader, neither of which blocks.
	}
}

// own brings seq from s to state 11, and reports false if s is not at rest or
// not what seq is.
func (h *head) own(s uint64) bool {
	// Pairs with the steps that end ownership, in store, disown and publish:
	// what was written there is seen here.
	return s&states == open && h.seq.CompareAndSwap(s, s|owned)
}

// disown ends what own began, in state 11.
func (h *head) disown() {
	h.seq.Store(h.seq.Load() &^ owned) // Pairs with own.
}

func (h *head) unlock() {
	h.disown()
	h.mu.Unlock()
}
