package rcu

import (
	"context"
	"fmt"
)

// A Cookie names a grace period of one [Domain]: one that begins after the call that
// returned the Cookie. Cookies are comparable; the zero Cookie names one that has ended.
type Cookie struct {
	d *Domain // nil in the zero Cookie
	n uint64
}

// mustBeOf panics if c names a grace period of another Domain, which says nothing about d's.
func (c Cookie) mustBeOf(d *Domain, what string) {
	if c.d != d && c.d != nil {
		panic("rcu: " + what + " for a Cookie of another Domain")
	}
}

// Cookie returns a Cookie without asking for its grace period: it ends when others wait
// for it, or when [Domain.Wait] does. It costs a few nanoseconds and does not block.
func (d *Domain) Cookie() Cookie {
	d.mustBeMade()
	return Cookie{d, d.arrive()}
}

// StartPoll returns a Cookie and has d's worker bring its grace period about. It does not
// block. It panics if d is closed.
func (d *Domain) StartPoll() Cookie {
	d.mustBeMade()
	c := Cookie{d, d.arrive()}
	w := &d.worker
	for {
		want := w.want.Load()
		// Pairs with the load in drain, which follows the worker's change of state.
		if want >= c.n || w.want.CompareAndSwap(want, c.n) {
			break
		}
	}
	d.hook(hookQueued)
	if !d.rouse() {
		panic("rcu: StartPoll of a closed Domain")
	}
	d.flush()
	return c
}

// Poll reports whether c's grace period has ended. If so, the ends of the sections that it waited
// for synchronize before the return. It costs one load. It panics if c is of another Domain.
func (d *Domain) Poll(c Cookie) bool {
	c.mustBeOf(d, "Poll")
	return d.done.Load() >= c.n
}

// Wait waits until c's grace period has ended, and brings it about if nobody else does. Its
// errors and its ordering are those of [Domain.Synchronize]. It panics if c is of another Domain.
func (d *Domain) Wait(ctx context.Context, c Cookie) error {
	if err := d.mayWait(ctx, "Wait"); err != nil {
		return err
	}
	c.mustBeOf(d, "Wait")
	if d.Poll(c) {
		return nil
	}
	if err := d.mayBlock("Wait"); err != nil {
		return err
	}
	d.flush()
	if err := d.wait(ctx, c.n, false); err != nil {
		return fmt.Errorf("rcu: Wait: %w", err)
	}
	return nil
}
