package rcutest

import (
	"math/rand/v2"

	"github.com/quiesce-go/quiesce/rcu"
)

// slots is the Structure of those who have none: as little as can be between the readers and the Domain.
type slots []rcu.Pointer[Object]

// newSlots makes them few, so that what a reader has found is soon taken out.
func newSlots(updaters int) slots { return make(slots, updaters) }

func (s slots) Exchange(rng *rand.Rand, fresh *Object) *Object {
	return s[rng.IntN(len(s))].Swap(fresh)
}

func (s slots) Find(rng *rand.Rand, visit func(*Object)) {
	if o := s[rng.IntN(len(s))].Load(); o != nil {
		visit(o)
	}
}
