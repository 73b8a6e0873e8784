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
	over   atomic.Bool   // more are pending than limit, as far as Calls know
	stride uint64        // one of so many Calls, a power of two, looks at how many are pending; 0 for none
	limit  int64         // see WithMaxPending
	lazy   time.Duration // see WithLazy
	run    func()        // Domain.work; a go statement with a method would allocate
	intake []shard       // a power of two of them

	_ [lineSize]byte // above is what every Call reads, below what the worker writes

	want atomic.Uint64 // the newest grace period that StartPoll asked for

	// A pass takes in everything queued and runs it. A callback that was queued before a pass
	// begins is run when that pass has finished, or was earlier. They finish in the order in which
	// they began, and at most two are under way: while the callbacks of one run, the next may wait
	// for its grace period.
	begun, finished atomic.Uint64

	caller atomic.Uint64 // the id of the worker's goroutine while it runs callbacks

	// When the oldest callback was queued, roughly, of those that a pass waits with and of those that it
	// runs; as now gives it, 0 when there are none.
	oldestWaiting, oldestRunning atomic.Int64

	ran uint64 // callbacks ever begun; written by the worker only, loaded atomically; 64-bit aligned by those above

	hasty   atomic.Bool // somebody does not want to wait until a lazy Domain's batch is full
	flushed broadcast   // what a lazy worker waits for may have changed

	// The passes, of the worker alone. A worker that ends in the middle leaves them to the next.
	running, waiting pass
	last             int64 // when the callbacks of the last pass began to run, as now gives it
	lastSize         int   // how many they were

	buf [idBytes]byte // of the worker
}

// A pass is callbacks on their way.
type pass struct {
	number uint64 // in begun; 0 if there is no pass
	batch  *Head  // not yet run
	size   int    // of the whole batch
	target uint64 // the grace period that they wait for
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
			if mutant == mutantLostBatch {
				w.running.batch = nil
			}
			go w.run()
		}
	}()
	id := goroutineID(w.buf[:])
	for {
		if w.running.number == 0 {
			if w.waiting.number == 0 {
				d.gather()
				d.beginPass()
			}
			d.wait(context.Background(), w.waiting.target, w.waiting.size > manyCallbacks)
			w.running, w.waiting = w.waiting, pass{}
			w.oldestRunning.Store(w.oldestWaiting.Load())
			w.oldestWaiting.Store(0)
			if w.lastSize = w.running.size; w.lastSize > 0 {
				w.last = now()
			}
		}
		w.caller.Store(id)
		d.runBatch()
		w.caller.Store(0)
		w.oldestRunning.Store(0)
		w.finished.Store(w.running.number) // Pairs with the loads in Barrier.
		if mutant == mutantEarlyFinish {
			w.finished.Store(w.begun.Load())
		}
		empty := w.running.size == 0 && w.waiting.number == 0
		w.running = pass{}
		d.moved.wake()
		// After a pass that ran something there is always another: Barrier relies on it.
		if empty && d.drain() {
			ended = true
			return
		}
	}
}

const (
	manyCallbacks = 10000 // are worth an expedited grace period

	// The worker lets callbacks gather for restTime after a grace period, so that a steady
	// trickle of them does not become a stream of interrupts to all CPUs; but not if they are
	// many, or somebody waits.
	restTime     = 200 * time.Microsecond
	fewCallbacks = 1000

	// While the worker runs callbacks, it looks after grace periods that others need.
	lookEvery = 32                     // callbacks, more often at first and when they are slow
	lookTime  = 100 * time.Microsecond // at least
)

// gather lets callbacks gather before a pass takes them in.
func (d *Domain) gather() {
	w := &d.worker
	switch {
	case w.lazy > 0:
		d.linger()
	case w.last != 0 && w.lastSize < fewCallbacks && d.anyQueued() && !d.moved.waiting():
		if t := since(w.last); t < restTime {
			time.Sleep(restTime - t)
		}
	}
}

// beginPass begins a pass, which takes in everything queued, and notes what it has to wait for.
func (d *Domain) beginPass() {
	w := &d.worker
	p := &w.waiting
	w.hasty.Store(false)       // Before what was queued is taken. Pairs with flush.
	p.number = w.begun.Add(1)  // Pairs with the load in Barrier.
	oldest := d.oldestQueued() // Before, too: later there may be younger ones.
	for i := range w.intake {
		s := &w.intake[i]
		if s.top.Load() == nil {
			continue
		}
		h := s.top.Swap(nil) // Pairs with the CompareAndSwap in enqueue.
		// The stack has the youngest on top, the batch the oldest.
		for h != nil {
			next := h.next
			h.next, p.batch, h = p.batch, h, next
			p.size++
		}
	}
	p.target = w.want.Load()
	if p.size > 0 {
		w.oldestWaiting.Store(oldest)
		p.target = d.arrive()
	}
}

// oldestQueued returns when the oldest callback was queued that no pass has taken in, as now gives it, 0 if
// there is none.
func (d *Domain) oldestQueued() (t int64) {
	for i := range d.worker.intake {
		if s := &d.worker.intake[i]; s.top.Load() != nil {
			if since := s.since.Load(); t == 0 || since < t {
				t = since
			}
		}
	}
	return t
}

var epoch = time.Now()

// now is the time in nanoseconds on a clock that does not jump. It is never 0.
func now() int64 { return int64(time.Since(epoch)) | 1 }

// since returns how long ago t was.
func since(t int64) time.Duration { return max(0, time.Duration(now()-t)) }

// runBatch calls the callbacks of the pass whose grace period has ended. They do not hold up other
// grace periods.
func (d *Domain) runBatch() {
	w := &d.worker
	looked, slow := w.last, false
	for n := 1; w.running.batch != nil; n++ {
		h := w.running.batch
		fn := h.fn
		w.running.batch = h.next
		h.next, h.fn = nil, nil
		storeRelease(&w.ran, w.ran+1)
		storeRelease32(&h.queued, atomic.LoadUint32(&h.queued)+1) // Pairs with the load in enqueue: h may be queued again.
		fn(h)
		if (slow || n%lookEvery == 0 || n&(n-1) == 0) && w.running.batch != nil && mutant != mutantStarve {
			t := now()
			if slow = time.Duration(t-looked) >= lookTime; slow {
				looked = t
				d.lookAfter()
			}
		}
	}
}

// lookAfter works for those who depend on the worker's grace periods, without waiting.
func (d *Domain) lookAfter() {
	w := &d.worker
	if w.waiting.number == 0 && d.anyQueued() && d.lingers() <= 0 {
		d.beginPass()
	}
	target := max(w.want.Load(), w.waiting.target)
	if r := &d.role[0]; d.done.Load() < target && r.tryAcquire() {
		d.advance(target)
		r.release()
		d.moved.wake() // Whoever still waits takes the role.
	}
}

// drain reports whether the worker has nothing left to do and may end.
func (d *Domain) drain() bool {
	w := &d.worker
	w.state.Swap(workerDraining)
	d.hook(hookDrained)
	switch mutant {
	case mutantLostWish:
		return w.state.CompareAndSwap(workerDraining, workerIdle)
	case mutantImmortal:
		time.Sleep(time.Minute)
		return false
	}
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
	if mutant == mutantGPBarrier {
		return d.Synchronize(ctx)
	}
	// What is queued is run by the pass that began last or by the one after it, which then comes;
	// what is not queued was taken by a pass that began already. Pairs with begun.Add in beginPass. A
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
	if w.finished.Load() < target {
		if err := d.mayBlock("Barrier"); err != nil {
			return err
		}
	}
	for w.finished.Load() < target {
		moved := d.moved.wait()
		w.flushed.wake() // Nothing lingers while somebody waits. Pairs with linger.
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
// goroutine of d is left but those that Go started. Sections are not waited for; their Unlocks remain
// legal, and so do the Locks of the Readers there are, though nothing waits for them any more. Afterwards
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
		if err := d.mayBlock("Close"); err != nil {
			return err
		}
		moved := d.moved.wait()
		w.flushed.wake() // As in Barrier.
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
	return id != 0 && mutant != mutantNoDeadlock && id == goroutineID(make([]byte, idBytes))
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
