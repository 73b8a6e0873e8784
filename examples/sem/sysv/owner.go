package sysv

import (
	"sync"
	"sync/atomic"

	"github.com/quiesce-go/quiesce/idr"
	"github.com/quiesce-go/quiesce/rcu"
)

// An Owner is what a process is to System V: it has credentials, and when it exits, its operations with
// Undo are taken back. Make it with [Table.NewOwner].
type Owner struct {
	t      *Table
	who    Credentials
	exited atomic.Bool // set before undos are done: pairs with perform

	mu    sync.Mutex
	undos map[ID]struct{} // arrays that may have undos of this Owner; guarded by mu
}

// NewOwner returns a new Owner.
func (t *Table) NewOwner(who Credentials) *Owner {
	return &Owner{t: t, who: who, undos: make(map[ID]struct{})}
}

// mayUndo has Exit look at an array.
func (o *Owner) mayUndo(id ID) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.exited.Load() {
		return EINVAL
	}
	o.undos[id] = struct{}{}
	return nil
}

// Exit takes back what o did with Undo to arrays that are still there, array by array. What then can be
// done by those who wait is done. A value does not become less than 0 by it, nor more than a value can
// be. Operations with Undo fail from then on; other calls of o's Threads should have ended. A second
// Exit does nothing.
func (o *Owner) Exit() {
	o.mu.Lock()
	first := !o.exited.Swap(true)
	o.mu.Unlock()
	if !first {
		return
	}
	th := o.NewThread()
	defer th.Close()
	for id := range o.undos {
		th.undo(id).wake()
	}
	o.undos = nil
}

func (th *Thread) undo(id ID) (woken wakeList) {
	v, err := th.visit(id)
	if err != nil {
		return woken
	}
	defer v.leave()
	if v.lock() != nil {
		return woken
	}
	a := v.a
	undo := a.undos[th.o]
	if undo == nil {
		return woken
	}
	delete(a.undos, th.o)
	for i, adjust := range undo {
		if adjust != 0 {
			a.sems[i].value = min(max(0, a.sems[i].value+adjust), a.limits.Value)
			a.sems[i].pid = th.o.who.PID
		}
	}
	return a.settle()
}

// A Thread makes the calls of an [Owner], for one goroutine at a time. Make it with
// [Owner.NewThread].
type Thread struct {
	o      *Owner
	reader *rcu.Reader
	waiter waiter
	slept  *idr.Object[array] // while it sleeps: the array, with a reference
}

// NewThread returns a new Thread of o.
func (o *Owner) NewThread() *Thread {
	return &Thread{o: o, reader: o.t.d.NewReader(), waiter: waiter{owner: o, done: make(chan error, 1)}}
}

// Close gives back what the Thread has of the Table's Domain. No other method may be called after it.
func (th *Thread) Close() { th.reader.Close() }
