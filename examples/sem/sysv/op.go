package sysv

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/quiesce-go/quiesce/asm"
)

// An Op is an operation on one semaphore. A Delta above 0 is added to its value. One below 0 is as well,
// when the value is large enough, and is waited for until then. If it is 0, the value is waited for to
// become 0.
type Op struct {
	Num   int
	Delta int
	Flags OpFlags
}

// OpFlags are flags of an Op.
type OpFlags uint8

const (
	NoWait OpFlags = 1 << iota // IPC_NOWAIT: EAGAIN instead of waiting
	Undo                       // SEM_UNDO: take it back when the Owner exits
)

// Op does operations on an array: all, or none. If one of them has to wait it sleeps until all can be
// done at once, or ctx ends. Those who sleep are served in the order of their coming, as far as what
// they wait for is there. It allocates nothing, but for the first Undo of an Owner with an array and
// when it sleeps.
//
// The errors are EINVAL for an id that there never was, for no ops, and for an Owner that has exited;
// E2BIG for too many ops; EIDRM for an array that was removed, before the call or while it slept;
// EFBIG for a number that no semaphore has; EACCES; ERANGE if a value, or an Undo, would be too large;
// EAGAIN for an operation with NoWait that has to wait. If ctx ends the error is EAGAIN for a deadline,
// as that of semtimedop, or else EINTR, and the error of ctx as well. With an error, nothing was done.
func (th *Thread) Op(ctx context.Context, id ID, ops []Op) error {
	woken, err := th.op(id, ops)
	woken.wake()
	if err == errSleep {
		return th.sleep(ctx)
	}
	return err
}

// errSleep is what op returns if the Thread's waiter is pending, with a reference to the array.
var errSleep = errors.New("sleep")

func (th *Thread) op(id ID, ops []Op) (woken wakeList, err error) {
	t := th.o.t
	if len(ops) == 0 {
		return woken, EINVAL
	}
	if len(ops) > t.limits.Ops {
		return woken, E2BIG
	}
	highest, alter, undo := 0, false, false
	for i := range ops {
		op := &ops[i]
		if op.Num < 0 {
			return woken, EFBIG
		}
		highest = max(highest, op.Num)
		alter = alter || op.Delta != 0
		undo = undo || op.Flags&Undo != 0
	}
	if undo {
		if err := th.o.mayUndo(id); err != nil {
			return woken, err
		}
	}
	wanted := uint32(mayRead)
	if alter {
		wanted = mayAlter
	}

	v, err := th.visit(id)
	if err != nil {
		return woken, err
	}
	defer v.leave()
	if highest >= len(v.a.sems) {
		return woken, EFBIG
	}
	if err := v.allowed(wanted); err != nil {
		return woken, err
	}
	cycles := asm.Cycles()
	if err := v.lock(); err != nil {
		return woken, err
	}
	blocked, err := v.a.perform(ops, th.o)
	switch {
	case err != nil:
		return woken, err
	case blocked >= 0:
		// The array is not removed while it is locked, so there is a reference to be had: for the
		// sleep, which is not in the section.
		if !v.o.Get() {
			panic("sysv: an array was removed while it was locked")
		}
		th.slept = v.o
		th.waiter.ops, th.waiter.blocked = ops, blocked
		v.a.pending = append(v.a.pending, &th.waiter)
		return woken, errSleep
	}
	if len(v.a.pending) > 0 && alter {
		woken = v.a.settle()
	}
	v.a.stamp(cycles)
	return woken, nil
}

// sleep waits for what op could not do.
func (th *Thread) sleep(ctx context.Context) error {
	o, w := th.slept, &th.waiter
	defer func() {
		th.slept, w.ops = nil, nil
		o.Put()
	}()
	select {
	case err := <-w.done:
		return err
	case <-ctx.Done():
	}
	// Perhaps somebody has just done it. If the array was removed, somebody has said so.
	if o.Lock() == nil {
		a := o.Value()
		i := slices.Index(a.pending, w)
		if i >= 0 {
			a.pending = slices.Delete(a.pending, i, i+1)
		}
		o.Unlock()
		if i >= 0 {
			err := EINTR
			if errors.Is(ctx.Err(), context.DeadlineExceeded) {
				err = EAGAIN
			}
			return fmt.Errorf("%w: %w", err, ctx.Err())
		}
	}
	return <-w.done
}
