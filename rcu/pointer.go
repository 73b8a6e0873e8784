package rcu

import "sync/atomic"

// A Pointer is an [atomic.Pointer] to what sections protect. Readers load it in a section
// and use what it points to until the section ends. The zero Pointer is nil. It must not be
// copied, and may be used by any number of goroutines. Its operations order like those of
// atomic.Pointer: a Store synchronizes before the Load that observes it.
type Pointer[T any] struct{ p atomic.Pointer[T] }

// Load returns the pointer. It costs what a load does.
func (p *Pointer[T]) Load() *T { return p.p.Load() }

// Store sets the pointer to new.
func (p *Pointer[T]) Store(new *T) { p.p.Store(new) }

// Swap sets the pointer to new and returns the old one.
func (p *Pointer[T]) Swap(new *T) *T { return p.p.Swap(new) }

// CompareAndSwap sets the pointer to new if it is old, and reports whether it was.
func (p *Pointer[T]) CompareAndSwap(old, new *T) bool { return p.p.CompareAndSwap(old, new) }

// Replace sets the pointer to new, and has free called with the old one after a grace period of
// d, if it is not nil. It does not wait. It panics if d is closed.
func (p *Pointer[T]) Replace(d *Domain, new *T, free func(*T)) {
	d.mustBeMade()
	d.mustBeOpen("Replace")
	mustBeFunc(free != nil, "Replace")
	if old := p.p.Swap(new); old != nil {
		Retire(d, old, free)
	}
}
