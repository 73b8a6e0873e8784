package percpu

// This file uses unsafe to get from the address of a Gate, which is all that
// the assembly knows, to the lock or reference that it is the first field of.

import (
	"unsafe"

	"github.com/quiesce-go/quiesce/asm"
	"github.com/quiesce-go/quiesce/internal/gate"
)

// A gated counts entries and exits by CPU while its gate is open. It must be the
// first field of an RWMutex or a Ref.
type gated struct {
	gate asm.Gate // must be first
}

// What a gated counts by. The slow path tells by that whose it is: with what it
// finds there it would take the zero Ref for an RWMutex, and store to its fields.
const (
	byRWMutex = 1
	byRef     = -1
)

// The words of a gated. Entries and exits are counted apart because an entry on
// one CPU and its exit on another could otherwise cancel out while somebody is
// inside: see inside.
const (
	entries = iota
	exits
	gatedWords
)

// inside returns how many more entries than exits there were, each of which was
// counted by by. Exits are summed first: each that is counted has its entry counted
// too. So while the gate is shut and only exits change, 0 means that nobody is inside.
// A negative number means, at any time, that there were more exits than entries.
func (g *gated) inside(by int64) int64 {
	n := g.gate.Block.Sum(exits)
	return (g.gate.Block.Sum(entries) - n) * by
}

func init() {
	gate.NoFence = mutant == mutantNoFence
	gate.Slow = func(p unsafe.Pointer, i int, delta int64) {
		if delta == byRef && mutant != mutantAnyRef {
			(*Ref)(p).slow(i)
		} else {
			(*RWMutex)(p).slow(i)
		}
	}
}
