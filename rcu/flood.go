package rcu

import (
	"math/bits"
	"sync/atomic"
	"time"
)

// WithMaxPending bounds the callbacks of a Domain that are pending: queued and not run. There is no
// limit without it, or if n is not positive.
//
// Past n, [Domain.TryCall] returns [ErrBusy], and Call and its kin, which cannot fail, hurry the grace
// period and then slow their callers: by ten milliseconds for each callback past n, by a second at most, and no
// longer than until enough callbacks have run. They never wait for a grace period, so they may
// be used in sections, and they do not slow callbacks. So a section that does not end makes updaters slow,
// and not the program big.
//
// A CPU looks at the count with every 64th call, more often if n is below 1024. So many for each CPU, and what
// slowed callers still queue, may come on top of n.
func WithMaxPending(n int) Option {
	return func(d *Domain) { d.worker.limit = int64(max(n, 0)) }
}

const (
	maxStride = 64

	slowBy = 10 * time.Millisecond // for each callback past the limit
	slowTo = time.Second
)

// setStride decides how often Calls look at how many are pending.
func (w *worker) setStride() {
	switch {
	case w.limit > 0:
		n := uint64(min(max(w.limit/16, 1), maxStride))
		w.stride = 1 << (bits.Len64(n) - 1)
	case w.lazy > 0:
		w.stride = maxStride
	}
}

// pending returns how many callbacks are queued and not run, or a few more.
func (d *Domain) pending() int64 {
	w := &d.worker
	ran := atomic.LoadUint64(&w.ran) // before queued, or the difference could be negative
	return int64(w.everQueued() - ran)
}

// everQueued returns how many callbacks were ever queued.
func (w *worker) everQueued() (n uint64) {
	for i := range w.intake {
		n += w.intake[i].queued.Load()
	}
	return n
}

// flooded reports whether so many callbacks are pending that grace periods should hurry.
func (d *Domain) flooded() bool {
	n := int64(manyCallbacks)
	if w := &d.worker; w.limit > 0 {
		n = min(n, w.limit)
	}
	return d.pending() > n && mutant != mutantNoExpedite
}

// bound keeps the pending callbacks within their limit, after the caller has queued one.
func (d *Domain) bound(try bool) {
	w := &d.worker
	n := d.pending()
	if n >= fewCallbacks || w.limit > 0 && n >= w.limit {
		d.flush()
	}
	if w.limit == 0 || n <= w.limit || mutant == mutantNoLimit {
		if w.over.Load() {
			w.over.Store(false)
		}
		return
	}
	w.over.Store(true) // Now each Call looks.
	// A callback is not slowed: it is the way out.
	if try || w.isCaller() {
		return
	}
	timer := time.NewTimer(min(time.Duration(n-w.limit)*slowBy, slowTo))
	defer timer.Stop()
	for {
		moved := d.moved.wait()
		if d.pending() <= w.limit {
			return
		}
		select {
		case <-moved:
		case <-timer.C:
			return
		}
	}
}
