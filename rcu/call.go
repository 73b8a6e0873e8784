package rcu

import (
	"fmt"
	"math/bits"
	"sync/atomic"

	"github.com/quiesce-go/quiesce/asm"
)

// A Head is what [Domain.CallHead] queues a callback by. Embed it in the object that the
// callback is about, and nothing is allocated. The zero Head is ready. A Head must not be
// copied, and not be used again before its callback has begun to run.
type Head struct {
	_ noCopy

	next *Head // below it in its shard, then after it in its batch
	fn   func(*Head)

	// queued is odd from CallHead until just before fn is called, and one more with each change, so that a Call knows
	// its own turn.
	queued uint32
}

// A shard takes in callbacks from some of the CPUs: a stack, emptied as a whole by the worker.
type shard struct {
	queued atomic.Uint64 // ever
	since  atomic.Int64  // when what is in the stack began to gather, as now gives it; roughly
	top    atomic.Pointer[Head]
	_      [lineSize - 16 - wordSize]byte
}

const maxShards = 64

func newIntake() []shard {
	n := 1 << bits.Len(uint(asm.Columns()-1))
	return make([]shard, min(n, maxShards))
}

// enqueue queues h. It returns ErrClosed, or ErrBusy if try is set and as many are pending as may be.
func (d *Domain) enqueue(h *Head, fn func(*Head), try bool) error {
	w := &d.worker
	if len(w.intake) == 0 {
		d.mustBeMade() // It is not, and this panics. The number that it looks at changes with each grace period.
	}
	turn := atomic.LoadUint32(&h.queued) + 1 // Pairs with the store in runBatch: what that did to h is over.
	if (turn&1 == 0 || !atomic.CompareAndSwapUint32(&h.queued, turn-1, turn)) && mutant != mutantRequeue {
		panic("rcu: CallHead of a Head that is queued already")
	}
	if mutant == mutantLockedCall {
		d.role[0].acquire()
		defer d.role[0].release()
	}
	h.fn = fn
	s := &w.intake[asm.CPU()&(len(w.intake)-1)]
	n := s.queued.Add(1)
	if try && w.limit > 0 && d.pending() > w.limit && mutant != mutantNoLimit {
		// Counted first and looked at next: the callers together never pass the limit.
		s.queued.Add(^uint64(0))
		atomic.StoreUint32(&h.queued, turn+1) // Pairs with the load above, of who queues h next.
		d.flush()
		return ErrBusy
	}
	for {
		top := s.top.Load()
		if top == nil {
			s.since.Store(now())
		}
		h.next = top
		// Pairs with the Swap in beginPass, for h and for what the caller unpublished.
		if s.top.CompareAndSwap(top, h) {
			break
		}
	}
	d.hook(hookQueued)
	if w.state.Load() == workerRunning || d.rouse() {
		if w.stride != 0 && (n&(w.stride-1) == 0 || w.over.Load()) {
			d.bound(try)
		}
		return nil
	}
	// Close came between. Either a worker that others had started has run h before, or nobody
	// will, and h stays in the shard for the collector. If it ran, others may have queued it again.
	// The CompareAndSwap pairs with the store in runBatch.
	if mutant == mutantVerdict {
		turn = atomic.LoadUint32(&h.queued) | 1
	}
	if !atomic.CompareAndSwapUint32(&h.queued, turn, turn+1) {
		return nil
	}
	s.queued.Add(^uint64(0))
	return ErrClosed
}

// mustEnqueue queues h for those who cannot return an error.
func (d *Domain) mustEnqueue(what string, h *Head, fn func(*Head)) {
	if d.enqueue(h, fn, false) != nil {
		panic("rcu: " + what + " of a closed Domain")
	}
}

// CallHead has fn(h) called after a grace period, by d's worker goroutine. It returns at once,
// also in a section and in a callback, allocates nothing, and costs some ten nanoseconds.
// Callbacks queued by one goroutine mostly run in the order of the calls; do not rely on it.
//
// The ends of all sections that began before the call synchronize before the call of fn, as does
// the call of CallHead. In fn, d's waits return [ErrDeadlock]; it may do anything else, such as
// queue h again. One callback runs at a time, so fn should be short: see [Domain.Go]. A panic in
// fn ends the program; runtime.Goexit in it ends the callback only. A Domain with a limit slows
// its caller when that is passed, see [WithMaxPending].
//
// CallHead panics if h is queued already, if fn is nil, and if d is closed.
func (d *Domain) CallHead(h *Head, fn func(*Head)) {
	mustBeFunc(fn != nil, "CallHead")
	d.mustEnqueue("CallHead", h, fn)
}

// Call has fn called after a grace period, as CallHead does. It allocates once.
func (d *Domain) Call(fn func()) {
	mustBeFunc(fn != nil, "Call")
	d.mustEnqueue("Call", newNode(callback(fn)), runNode)
}

// TryCall is Call, and never slows its caller: it returns an error that wraps [ErrBusy] if as many
// callbacks are pending as [WithMaxPending] allows, and [ErrClosed] if d is closed. The callbacks of
// TryCall alone never pass the limit; callers at the same time may all find the last place taken.
func (d *Domain) TryCall(fn func()) error {
	mustBeFunc(fn != nil, "TryCall")
	if err := d.enqueue(newNode(callback(fn)), runNode, true); err != nil {
		return fmt.Errorf("rcu: TryCall: %w", err)
	}
	return nil
}

// Go runs fn after a grace period in a goroutine of its own, where it may block and wait for d. A
// [Domain.Barrier] covers the start of fn, not its end.
func (d *Domain) Go(fn func()) {
	mustBeFunc(fn != nil, "Go")
	d.mustEnqueue("Go", newNode(callback(func() { go fn() })), runNode)
}

func mustBeFunc(ok bool, what string) {
	if !ok {
		panic("rcu: " + what + " with a nil function")
	}
}

// Retire has free(v) called after a grace period, as Call does: v is no longer reachable by
// new readers, and free is what becomes of it once the old ones have gone. It allocates once.
func Retire[T any](d *Domain, v T, free func(T)) {
	mustBeFunc(free != nil, "Retire")
	r := &retired[T]{v: v, free: free}
	r.runner = r
	d.mustEnqueue("Retire", &r.Head, runNode)
}

type retired[T any] struct {
	node
	v    T
	free func(T)
}

func (r *retired[T]) run() { r.free(r.v) }
