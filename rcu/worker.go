package rcu

import (
	"context"
	"fmt"
	"runtime"
	"sync/atomic"
	"time"
)

// The worker is a goroutine that waits for grace periods and runs callbacks. It exists from the first
// callback, or StartPoll, until nothing is left to do; starting one costs as much as waking one.
//
//	idle      no worker; nothing is queued by a call that has returned.
//	running   there is a worker, and it will look at everything queued before it leaves this state.
//	draining  it found nothing and looks once more. Whoever queues something goes back to running.
//	closed    for ever.
//
// Only the worker leaves running; only Close enters closed, from idle.
const (
	workerIdle = iota
	workerRunning
	workerDraining
	workerClosed
)

type worker struct {
	state  atomic.Uint32
	run    func()  // Domain.work; a go statement with a method would allocate
	intake []shard // a power of two of them

	_ [lineSize]byte // above is what every Call reads, below what the worker writes

	want atomic.Uint64 // the newest grace period that StartPoll asked for

	// A pass takes in everything queued and runs it. A callback that was queued before a pass
	// begins is run when that pass has finished, or was earlier.
	begun, finished atomic.Uint64

	caller atomic.Uint64 // the id of the worker's goroutine while it runs callbacks
	taken  atomic.Int64  // when the pass took its callbacks in, unix nanoseconds; 0 when there are none

	ran uint64 // callbacks ever begun; written by the worker only, loaded atomically; 64-bit aligned by those above

	// The pass, of the worker alone. A worker that ends in the middle leaves it to the next.
	batch *Head     // not yet run
	size  int       // of the whole batch
	ready bool      // the batch's grace period has ended
	last  time.Time // when that was

	buf [idBytes]byte // of the worker
}

// rouse makes sure that there is a worker that will see what the caller queued, and reports
// whether d is open.
func (d *Domain) rouse() bool {
	w := &d.worker
	for {
		switch w.state.Load() {
		case workerRunning:
			return true
		case workerClosed:
			return false
		case workerDraining:
			if w.state.CompareAndSwap(workerDraining, workerRunning) {
				return true
			}
		case workerIdle:
			if w.state.CompareAndSwap(workerIdle, workerRunning) {
				go w.run()
				return true
			}
		}
	}
}

// work is the worker.
func (d *Domain) work() {
	w := &d.worker
	ended := false
	defer func() {
		if !ended { // A callback called Goexit, or panics: another worker goes on with the rest.
			w.caller.Store(0)
			go w.run()
		}
	}()
	id := goroutineID(w.buf[:])
	for {
		if !w.ready {
			d.take()
		}
		w.caller.Store(id)
		d.runBatch()
		w.caller.Store(0)
		w.ready = false
		w.finished.Store(w.begun.Load()) // Pairs with the loads in Barrier.
		d.moved.wake()
		// After a pass that ran something there is always another: Barrier relies on it.
		if w.size == 0 && d.drain() {
			ended = true
			return
		}
	}
}

const (
	manyCallbacks = 10000 // a batch of more is worth an expedited grace period

	// The worker lets callbacks gather for restTime after a grace period, so that a steady
	// trickle of them does not become a stream of interrupts to all CPUs; but not if they are
	// many, or somebody waits.
	restTime     = 200 * time.Microsecond
	fewCallbacks = 1000
)

// take begins a pass and waits until its callbacks may run.
func (d *Domain) take() {
	w := &d.worker
	if w.size < fewCallbacks && d.anyQueued() && !d.moved.waiting() {
		if t := time.Since(w.last); t >= 0 && t < restTime {
			time.Sleep(restTime - t)
		}
	}
	w.begun.Add(1) // Pairs with the load in Barrier.
	d.splice()
	target := w.want.Load()
	if w.batch != nil {
		target = d.arrive()
	}
	d.wait(context.Background(), target, w.size > manyCallbacks)
	if w.size > 0 {
		w.last = time.Now()
	}
	w.ready = true
}

// splice takes in everything queued.
func (d *Domain) splice() {
	w := &d.worker
	w.size = 0
	for i := range d.worker.intake {
		if d.worker.intake[i].top.Load() == nil {
			continue
		}
		h := d.worker.intake[i].top.Swap(nil) // Pairs with the CompareAndSwap in enqueue.
		// The stack has the youngest on top, the batch the oldest.
		for h != nil {
			next := h.next
			h.next, w.batch, h = w.batch, h, next
			w.size++
		}
	}
	if w.size > 0 {
		w.taken.Store(time.Now().UnixNano())
	}
}

// runBatch calls the callbacks of the batch.
func (d *Domain) runBatch() {
	w := &d.worker
	for w.batch != nil {
		h := w.batch
		fn := h.fn
		w.batch = h.next
		h.next, h.fn = nil, nil
		storeRelease(&w.ran, w.ran+1)
		storeRelease32(&h.queued, 0) // Pairs with the Swap in enqueue: h may be queued again.
		fn(h)
	}
	w.taken.Store(0)
}

// drain reports whether the worker has nothing left to do and may end.
func (d *Domain) drain() bool {
	w := &d.worker
	w.state.Swap(workerDraining)
	d.hook(hookDrained)
	// Pairs with enqueue and StartPoll: who left a wish and saw running before the Swap is
	// seen here; who looks later finds draining or idle.
	if d.anyQueued() || w.want.Load() > d.done.Load() {
		w.state.Store(workerRunning)
		return false
	}
	if !w.state.CompareAndSwap(workerDraining, workerIdle) {
		return false // Somebody went back to running.
	}
	d.moved.wake() // Pairs with Close.
	return true
}

func (d *Domain) anyQueued() bool {
	for i := range d.worker.intake {
		if d.worker.intake[i].top.Load() != nil {
			return true
		}
	}
	return false
}

// Barrier waits until every callback that was queued before the call has run; what they did
// synchronizes before its return. It is not a grace period: with nothing queued it returns at once.
// Functions started by [Domain.Go] have started, not ended.
//
// It returns an error that wraps ctx.Err() if ctx ends first (the callbacks will still run),
// [ErrClosed], or [ErrDeadlock] in a callback of d.
func (d *Domain) Barrier(ctx context.Context) error {
	if err := d.mayWait(ctx, "Barrier"); err != nil {
		return err
	}
	w := &d.worker
	// What is queued is run by the pass that began last or by the one after it, which then comes;
	// what is not queued was taken by a pass that began already. Pairs with begun.Add in take. A
	// pass that begins between the two loads spoils them: it may have taken what was seen, and
	// its successor, with nothing to do, may be the last.
	target := w.begun.Load()
	for {
		queued := d.anyQueued()
		d.hook(hookBarrier)
		begun := w.begun.Load()
		if begun == target || mutant == mutantOnePass {
			target = begun
			if queued {
				target++
			}
			break
		}
		target = begun
	}
	for w.finished.Load() < target {
		moved := d.moved.wait()
		// Pairs with Close. There is no pass after it, and all that had been queued has run: what
		// was seen had been left by a Call that then found d closed.
		closed := w.state.Load() == workerClosed && mutant != mutantLostClose
		if closed || w.finished.Load() >= target {
			break
		}
		select {
		case <-moved:
		case <-ctx.Done():
			return fmt.Errorf("rcu: Barrier: %w", ctx.Err())
		}
	}
	return nil
}

// Close waits until all callbacks have run, with those that callbacks queue, and closes d. Then no
// goroutine of d is left. Sections are not waited for; their Unlocks remain legal. Afterwards
// waits return [ErrClosed], and Call, CallHead, Retire, Go, StartPoll, ReadLock and NewReader panic.
//
// If ctx ends first, the error wraps ctx.Err() and says how many callbacks are pending, and d
// stays open. Close returns [ErrClosed] if d is closed already, [ErrDeadlock] in a callback of d, and an
// error for the default Domain.
func (d *Domain) Close(ctx context.Context) error {
	if d.shared {
		return errDefault
	}
	if err := d.mayWait(ctx, "Close"); err != nil {
		return err
	}
	w := &d.worker
	for !w.state.CompareAndSwap(workerIdle, workerClosed) {
		moved := d.moved.wait()
		switch w.state.Load() {
		case workerIdle:
			continue
		case workerClosed:
			return fmt.Errorf("rcu: Close: %w", ErrClosed)
		}
		select {
		case <-moved:
		case <-ctx.Done():
			return fmt.Errorf("rcu: Close with %d callbacks pending: %w", d.Stats().CallbacksPending, ctx.Err())
		}
	}
	d.divert() // ReadLock panics from now on.
	d.moved.wake()
	return nil
}

// isCaller reports whether the calling goroutine is the worker, in a callback.
func (w *worker) isCaller() bool {
	id := w.caller.Load()
	return id != 0 && id == goroutineID(make([]byte, idBytes))
}

const idBytes = 32

// goroutineID returns the number of the calling goroutine, from the first line of its stack
// trace: "goroutine 123 [running]:". It costs about a microsecond.
func goroutineID(buf []byte) (id uint64) {
	for _, c := range buf[len("goroutine "):runtime.Stack(buf, false)] {
		if c < '0' || c > '9' {
			break
		}
		id = id*10 + uint64(c-'0')
	}
	return id
}
