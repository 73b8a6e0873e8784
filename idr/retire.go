package idr

import "github.com/quiesce-go/quiesce/rcu"

// RemoveRetire removes the entry of id in two steps, and reports whether there was one. When it
// returns, id is not found any more, and is held. After a grace period of d, that is when all
// read sections in which the object may have been found are over, free is called with the object;
// and after that id is free. A free that is nil does nothing, and what is left is that id is not
// given out while somebody may take it for the old object's.
//
// If id is free, reserved, held or negative, it returns false and does nothing.
//
// RemoveRetire never waits for readers, so it may be called in a read section. free is called
// without locks, by d's worker, which is not to be kept waiting; it may use the IDR. That free
// was called, and has returned, synchronizes before the call that takes id next. What a reader
// did in its section synchronizes before free. It allocates once.
//
// It panics if d is nil or closed, and has then done nothing.
func (x *IDR[T]) RemoveRetire(d *rcu.Domain, id int, free func(*T)) bool {
	if d == nil {
		panic("idr: RemoveRetire with a nil Domain")
	}
	v := x.c.withdraw(uintptr(id))
	if v == nil {
		return false
	}
	queued := false
	defer func() {
		if !queued {
			x.c.settle(uintptr(id), v)
		}
	}()
	rcu.Retire(d, retired[T]{x, id, restore[T](v), free}, retired[T].free)
	queued = true
	return true
}

// A retired is what is left to do for an entry after the grace period.
type retired[T any] struct {
	x  *IDR[T]
	id int
	v  *T
	fn func(*T)
}

func (r retired[T]) free() {
	defer r.x.c.settle(uintptr(r.id), nil) // also if fn ends its goroutine
	if r.fn != nil {
		r.fn(r.v)
	}
}
