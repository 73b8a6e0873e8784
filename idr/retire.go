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
// without locks, by d's worker, which is not to be kept waiting; it may use the IDR. The ends of
// the read sections synchronize before the call of free, and its return before the call that
// takes id next. RemoveRetire allocates once.
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
	r := &retired[T]{c: &x.c, id: uintptr(id), v: restore[T](v), free: free}
	switch mutant {
	case mutantRetireNow:
		r.run()
		return true
	case mutantEarlyID:
		x.c.settle(r.id, nil)
	}
	queued := false
	defer func() {
		if !queued {
			x.c.settle(r.id, v)
		}
	}()
	r.after(d, r, "RemoveRetire")
	queued = true
	return true
}

// A retired is an entry between RemoveRetire and the end of its grace period.
type retired[T any] struct {
	deferred
	c    *core
	id   uintptr
	v    *T
	free func(*T)
}

func (r *retired[T]) run() {
	if mutant != mutantEarlyID {
		defer r.c.settle(r.id, nil) // also if free ends its goroutine
	}
	if r.free != nil {
		r.free(r.v)
	}
}
