package idr

import (
	"iter"
	"math"
)

// Next returns the first entry with an id of id or above, and whether there is one. Ids that are
// reserved or held have no entry. A negative id stands for 0.
//
// Next takes no lock. An entry that is there while Next runs is never passed over, whatever else
// comes and goes. It takes some steps up and down the tree, and more only if there are long runs
// of reserved ids.
func (x *IDR[T]) Next(id int) (int, *T, bool) {
	for id, v := range x.From(id) {
		return id, v, true
	}
	return 0, nil, false
}

// All returns an iterator over the entries, by ascending ids: From(0).
func (x *IDR[T]) All() iter.Seq2[int, *T] { return x.From(0) }

// From returns an iterator over the entries with an id of id or above, by ascending ids. A
// negative id stands for 0.
//
// It takes no lock, and no lock is held when the body of the loop runs, so the body may do with
// the IDR what it likes. An entry that is there from the beginning of the iteration to the end is
// seen exactly once. One that is inserted, replaced or removed meanwhile is seen or not, as it is
// at the moment that the iteration comes by, and at most once. The whole is not a snapshot.
func (x *IDR[T]) From(id int) iter.Seq2[int, *T] {
	return func(yield func(int, *T) bool) {
		for at := uintptr(max(id, 0)); at <= math.MaxInt; {
			// Pairs with the Stores in replaceLocked, unlinkLocked and reset.
			leaf := x.c.root.Load().next(at)
			if leaf == nil {
				return
			}
			for i := max(at, leaf.base) - leaf.base; i < fan; i++ {
				// Pairs with put.
				if v := leaf.at(i).Load(); v != nil && !yield(int(leaf.base+i), restore[T](v)) {
					return
				}
			}
			if mutant == mutantNextEnds && leaf.full == 0 {
				return
			}
			at = leaf.base + fan
		}
	}
}
