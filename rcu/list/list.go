package list

import (
	"iter"
	"sync/atomic"
)

// The invariants that readers rely on:
//
//	L1. Elements have one order for ever, in which each Element has its place from its insertion on.
//	    Each link leads forward in it, to an Element that was in the List when the link was last
//	    stored, or to the end.
//	L2. No link passes over an Element that was in the List when the link was last stored. The links of
//	    Elements in the List are stored whenever that would become wrong; a removed Element's link is
//	    what it was at its removal.
//
// A walk loads the link of an Element while that one is in the List, or after it was removed during
// the walk: the walk found it by a link that was last stored when it was in the List. So what the walk
// passes over was not in the List for all of its time, and it visits nothing twice.

// A List is a doubly linked list of pointers to T. The zero List is empty and ready. It must
// not be copied after first use.
//
// [List.All] and [List.Len], and the methods of Elements that say so, may be called by any number of
// goroutines beside one writer. All else is a writer's, and writers exclude each other, for instance
// by a mutex.
//
// The design is that of the Linux kernel's lists of RCU, without its ring: a walk ends at a nil link, so
// that it also ends on an Element that was removed.
type List[T any] struct {
	first atomic.Pointer[Element[T]] // changed by writers, loaded by readers
	last  *Element[T]                // writers only
	n     atomic.Int64               // Elements in the List; changed by writers
}

// An Element is a place in a [List], and an object in it. Lists make Elements; it must not be copied. It
// belongs to its List until it is removed, and to none afterwards.
type Element[T any] struct {
	next atomic.Pointer[Element[T]] // nil at the end; kept after the removal
	v    atomic.Pointer[T]          // never nil; kept after the removal
	prev *Element[T]                // writers only; nil at the front
	list *List[T]                   // writers only; nil after the removal
}

// PushFront inserts v before all others and returns its Element. It panics if v is nil.
func (l *List[T]) PushFront(v *T) *Element[T] {
	return l.insert("PushFront", nil, v)
}

// PushBack inserts v after all others and returns its Element. It panics if v is nil.
func (l *List[T]) PushBack(v *T) *Element[T] {
	return l.insert("PushBack", l.last, v)
}

// InsertBefore inserts v just before mark and returns its Element. It panics if v is nil, and if mark is
// not in l.
func (l *List[T]) InsertBefore(v *T, mark *Element[T]) *Element[T] {
	l.mustOwn("InsertBefore", mark)
	return l.insert("InsertBefore", mark.prev, v)
}

// InsertAfter inserts v just after mark and returns its Element. It panics if v is nil, and if mark is not
// in l.
func (l *List[T]) InsertAfter(v *T, mark *Element[T]) *Element[T] {
	l.mustOwn("InsertAfter", mark)
	return l.insert("InsertAfter", mark, v)
}

// insert puts a new Element after prev, or in front if that is nil.
func (l *List[T]) insert(what string, prev *Element[T], v *T) *Element[T] {
	mustBeObject(what, v)
	e := &Element[T]{prev: prev, list: l}
	e.v.Store(v)
	link := l.link(prev)
	next := link.Load()
	if mutant == mutantEarlyLink {
		link.Store(e)
		mutantPause()
	}
	e.next.Store(next)
	link.Store(e) // Pairs with the loads in All: who finds e finds v, and the way on.
	*l.back(next) = e
	l.n.Add(1)
	l.check()
	return e
}

// Remove takes e out of l and returns its object. A walk that stands on e goes on behind it; a walk that
// begins later does not find it. Readers may use the object until a grace period has passed, see
// [rcu.Retire]. It panics if e is not in l, for instance because it was removed before.
func (l *List[T]) Remove(e *Element[T]) *T {
	l.mustOwn("Remove", e)
	next := e.next.Load()
	if mutant != mutantKeepLink {
		l.link(e.prev).Store(next)
	}
	*l.back(next) = e.prev
	e.prev, e.list = nil, nil
	if mutant == mutantClearLink {
		e.next.Store(nil)
	}
	l.n.Add(-1)
	l.check()
	return e.v.Load()
}

// Replace makes v the object of e, which keeps its place, and returns the old one. A walk finds the one
// or the other there. Readers may use the old one until a grace period has passed. It panics if v is nil,
// and if e is not in l.
func (l *List[T]) Replace(e *Element[T], v *T) (old *T) {
	l.mustOwn("Replace", e)
	mustBeObject("Replace", v)
	return e.v.Swap(v) // Pairs with the loads in All and Value.
}

// All returns an iterator over the objects in l, from front to back, for readers. The caller is in a section
// of the Domain by which writers retire, for as long as it walks and uses what it found.
//
// It visits each Element exactly once that is in l during the whole walk, and none that was removed
// before the walk began; what is inserted or removed meanwhile is visited or not. The body may change
// l, if it is a writer's: remove what it looks at, too.
func (l *List[T]) All() iter.Seq[*T] {
	return func(yield func(*T) bool) {
		// The loads of links pair with the stores in insert and Remove, those of objects
		// with insert and Replace.
		for e := l.first.Load(); e != nil; e = e.next.Load() {
			if !yield(e.v.Load()) {
				return
			}
		}
	}
}

// Elements is All for those who want the Elements: writers, to which each is as good as one from PushBack.
// A reader can learn an Element's Value only.
func (l *List[T]) Elements() iter.Seq[*Element[T]] {
	return func(yield func(*Element[T]) bool) {
		for e := l.first.Load(); e != nil; e = e.next.Load() { // Pairs as in All.
			if !yield(e) {
				return
			}
		}
	}
}

// Len returns the number of Elements in l. Any goroutine may call it, outside sections too.
func (l *List[T]) Len() int { return int(l.n.Load()) }

// Front returns the first Element, nil if l is empty. Any goroutine may call it.
func (l *List[T]) Front() *Element[T] { return l.first.Load() }

// Back returns the last Element, nil if l is empty. It is for writers.
func (l *List[T]) Back() *Element[T] { return l.last }

// Next returns the Element after e, nil at the end. Any goroutine may call it, a reader in the section in
// which it found e. If e was removed, what follows may be as it was then.
func (e *Element[T]) Next() *Element[T] { return e.next.Load() }

// Prev returns the Element before e, nil at the front and if e was removed. It is for writers.
func (e *Element[T]) Prev() *Element[T] { return e.prev }

// Value returns e's object, the last one if e was removed. Any goroutine may call it, a reader in the
// section in which it found e.
func (e *Element[T]) Value() *T { return e.v.Load() }

// link returns the link to the Element after prev.
func (l *List[T]) link(prev *Element[T]) *atomic.Pointer[Element[T]] {
	if prev == nil {
		return &l.first
	}
	return &prev.next
}

// back returns the link to the Element before next.
func (l *List[T]) back(next *Element[T]) **Element[T] {
	if next == nil {
		return &l.last
	}
	return &next.prev
}

func (l *List[T]) mustOwn(what string, e *Element[T]) {
	switch {
	case e == nil:
		panic("list: " + what + " with a nil Element")
	case e.list == nil:
		panic("list: " + what + " with an Element that was removed already")
	case e.list != l:
		panic("list: " + what + " with an Element of another List")
	}
}

func mustBeObject[T any](what string, v *T) {
	if v == nil {
		panic("list: " + what + " of a nil pointer")
	}
}
