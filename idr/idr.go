package idr

import (
	"errors"
	"math"
)

// The errors of this package. They are returned as they are: compare with ==, or errors.Is.
var (
	ErrFull     = errors.New("idr: no free id in the range")
	ErrRange    = errors.New("idr: not a valid id, or not a valid range of ids")
	ErrExists   = errors.New("idr: the id is taken")
	ErrNotFound = errors.New("idr: no such id")
	ErrRemoved  = errors.New("idr: the object was removed")
	ErrAborted  = errors.New("idr: no object was built for the id")
)

// An IDR gives out ids, small integers, for objects, and finds an object by its id. The zero IDR
// is ready, and has no ids. An IDR must not be copied after its first use.
//
// All methods may be called from any goroutine, and from the functions that they call. Find,
// Next and iteration take no lock; methods that change something, and Len, take the IDR's mutex
// for a short time, and none calls other code while it has it.
//
// An id is free or taken. An id that is taken has an entry, which is an object that Find
// returns; or it is reserved, by a nil in the place of an object; or it is held: by an AllocFunc
// whose function still runs, or by a RemoveRetire whose object is not yet freed. To all other
// methods an id that is held is taken and has no entry, and cannot be removed. Ids are from 0 to
// math.MaxInt. Nothing is done about an id that is used after it was removed, and may by then be
// another object's: let RemoveRetire or AllocCyclic put off its return.
//
// A call that changes what an id stands for synchronizes before a Find, Next or step of an
// iteration that sees what it did: the object that it put there, or that it took one away. Calls
// that change something are ordered by the mutex: each synchronizes before the next, also if it
// fails. A Find that returns nil because an id never was taken is ordered after nothing.
//
// The ids are in a radix tree with 64 slots in a node and compressed paths, beside which stands a
// directory of the leaves of dense ids. It has the interface of Linux's IDR, and its rule that
// readers need no lock.
type IDR[T any] struct {
	c core
}

// Alloc takes the lowest free id, for v. With a nil v the id is reserved: it is taken, Find
// returns nil for it and iteration passes over it, until Replace or CompareAndSwap give it an
// object or Remove frees it.
//
// The error is [ErrFull] when no id is free. The cost is O(1) as long as ids are dense, and never
// more than some steps up and down the tree, however full it is. Each 64th id, about, allocates a
// leaf of 576 bytes.
func (x *IDR[T]) Alloc(v *T) (int, error) {
	id, err := x.c.alloc(erase(v), 0, math.MaxInt)
	return int(id), err
}

// AllocRange takes the lowest free id in [min, max], max included, as Alloc does. The error is
// [ErrFull] if there is none, and [ErrRange] if min is negative or above max.
func (x *IDR[T]) AllocRange(v *T, min, max int) (int, error) {
	if min < 0 || max < min {
		return 0, ErrRange
	}
	if mutant == mutantOneID && min == max {
		return 0, ErrRange
	}
	if mutant == mutantTruncate {
		min, max = int(uint32(min)), int(uint32(max))
	}
	id, err := x.c.alloc(erase(v), uintptr(min), uintptr(max))
	return int(id), err
}

// AllocCyclic takes the next free id in [min, max] after the one that AllocCyclic took last, and
// goes on from min when it comes to max. So an id that was removed is not soon given out again.
// It starts at min, and does so again if the last id was below min-1 or not below max; ids that
// others take, and calls that fail, do not move the place where it goes on, nor does Clear.
//
// The error is [ErrFull] if no id in the range is free, and [ErrRange] if min is negative or
// above max.
func (x *IDR[T]) AllocCyclic(v *T, min, max int) (int, error) {
	if min < 0 || max < min {
		return 0, ErrRange
	}
	id, err := x.c.allocCyclic(erase(v), uintptr(min), uintptr(max))
	return int(id), err
}

// AllocFunc takes the lowest free id in [min, max], and makes what build(id) returns its object.
// An object that has its id inside is so complete before anybody can find it. While build runs
// the id is held, and build may do whatever it likes, with the IDR too.
//
// If build returns nil the error is [ErrAborted]; then, and also if build panics or ends its
// goroutine, the id is free again. Other errors, with which build is not called: [ErrFull] if
// there is no free id, and [ErrRange] if min is negative or above max.
func (x *IDR[T]) AllocFunc(min, max int, build func(id int) *T) (int, error) {
	if min < 0 || max < min {
		return 0, ErrRange
	}
	id, err := x.c.hold(uintptr(min), uintptr(max))
	if err != nil {
		return 0, err
	}
	var v *T
	defer func() { x.c.settle(id, erase(v)) }()
	if v = build(int(id)); v == nil {
		return 0, ErrAborted
	}
	return int(id), nil
}

// Insert takes the given id, for v, or reserves it if v is nil. The error is [ErrExists] if the id
// is taken, and [ErrRange] if it is negative.
func (x *IDR[T]) Insert(id int, v *T) error {
	if id < 0 {
		return ErrRange
	}
	return x.c.insert(uintptr(id), erase(v))
}

// Replace makes v the object of id, which has an object or is reserved, and returns the old one,
// which is nil if id was reserved. Replace by nil leaves id reserved. The error is [ErrNotFound]
// if id is free, held or negative.
func (x *IDR[T]) Replace(id int, v *T) (old *T, err error) {
	p, err := x.c.replace(uintptr(id), erase(v))
	return restore[T](p), err
}

// CompareAndSwap makes new the object of id if its object is old, and reports whether it was.
// Here nil means reserved, for old and for new. For an id that is free, held or negative it
// returns false.
func (x *IDR[T]) CompareAndSwap(id int, old, new *T) bool {
	return x.c.compareAndSwap(uintptr(id), erase(old), erase(new))
}

// Remove frees id and returns its object, or nil if it was reserved. For an id that is free, held
// or negative it returns nil and does nothing. Of several calls for one object, one gets it.
//
// The leaf of the id is given back if it was the last in it, but for the leaf that was emptied
// last.
func (x *IDR[T]) Remove(id int) *T { return restore[T](x.c.remove(uintptr(id))) }

// Len returns the number of ids that are taken, whether they have an object or are reserved or
// held. It is exact, and O(1).
func (x *IDR[T]) Len() int { return x.c.len() }

// Stats are what an IDR has in memory, besides itself and the objects.
type Stats struct {
	Leaves    int // nodes that have slots for 64 ids each
	Inner     int // nodes above them
	Directory int // places for leaves in the array that dense ids are found by
	Bytes     int // of all that
}

// Stats returns what the IDR has in memory now. It is O(1).
func (x *IDR[T]) Stats() Stats {
	x.c.mu.Lock()
	defer x.c.mu.Unlock()
	s := Stats{Leaves: int(x.c.nleaves), Inner: int(x.c.ninner), Directory: len(x.c.leaves)}
	s.Bytes = (s.Leaves+s.Inner)*nodeBytes + s.Directory*placeBytes
	return s
}

// Clear removes all ids but those that are held. To readers it is as if they were removed one
// after the other. It is O(n), and writers wait for it. What dense ids were found by stays: two
// bits for each id that there once was, or four.
func (x *IDR[T]) Clear() { x.c.reset() }
