package rcu

import "time"

// WithLazy lets callbacks wait up to t longer than they have to, so that a grace period serves more of
// them; each costs every CPU that runs the program an interrupt, which wakes up what would rather sleep.
//
// Whoever waits is not kept waiting: [Domain.Barrier], [Domain.Synchronize], [Domain.Wait], [Domain.StartPoll]
// and [Domain.Close] send off what is queued, and so do a thousand pending callbacks.
func WithLazy(t time.Duration) Option {
	return func(d *Domain) { d.worker.lazy = t }
}

// lingers returns for how long the worker may leave what is queued where it is.
func (d *Domain) lingers() time.Duration {
	w := &d.worker
	if w.lazy <= 0 || w.hasty.Load() || d.moved.waiting() {
		return 0
	}
	return w.lazy - since(d.oldestQueued())
}

// linger waits while it may.
func (d *Domain) linger() {
	w := &d.worker
	for {
		flushed := w.flushed.wait()
		// Pairs with flush, StartPoll, Close and Barrier: what they left is seen here, or they wake.
		if w.want.Load() > d.done.Load() || !d.anyQueued() {
			return
		}
		t := d.lingers()
		if t <= 0 {
			return
		}
		timer := time.NewTimer(min(t, w.lazy))
		select {
		case <-flushed:
			timer.Stop()
		case <-timer.C:
			return
		}
	}
}

// flush has a lazy worker take in now what is queued.
func (d *Domain) flush() {
	w := &d.worker
	if w.lazy > 0 && d.anyQueued() && mutant != mutantNoFlush {
		w.hasty.Store(true) // Pairs with beginPass, and through the wake with linger.
		w.flushed.wake()
	}
}
