package rcu

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	uatomic "go.uber.org/atomic"

	"github.com/quiesce-go/quiesce/asm"
)

// # The protocol
//
// A grace period is driven by a goroutine that needs it; its state is in the Domain, so
// another can go on where one gave up.
//
//  1. n = number+1. Sections that load it later are not waited for.
//  2. Fence. A section whose announcement was made before its thread's barrier is visible
//     to 3. One that was made after it belongs to a section that sees all that was
//     unpublished before 1.
//  3. Wait until each Reader has shown 0, or a number that is not below n, and each of the two
//     phases of Guards has had as many ends, summed first, as begins, summed next.
//  4. done = n.
//
// Facts the tests refer to:
//
//	F1. Whoever arrives while n is in progress waits for n+1: his request may be younger than 1.
//	F2. A Reader that loaded a number, stopped, and announced it much later, is waited for by each
//	    grace period whose Fence comes after the announcement. Those before need not wait for it.
//	F3. A Guard likewise may announce itself in the phase that is not current. Hence both
//	    phases are checked in each grace period.
//	F4. What is summed as ended was summed as begun: an end that the first sum saw has its begin
//	    before it, in whichever column. So equal sums are equal sets, and the begins contain all
//	    that were announced before the Fence. No other fence is needed.
//	F5. A phase, or a Reader, that has passed once needs no second look: what it announces
//	    later is not waited for.
//	F6. New Guards in the current phase could keep its sums apart for ever. So once the other
//	    phase has passed, the phases change places. This is not needed for safety.

// A gracePeriod is the state of the grace period in progress, if done != number.
type gracePeriod struct {
	mu sync.Mutex // protects everything here, number, done and phase. Held for one look at the readers.

	left      []*record // Readers that have not passed
	words     []*int64  // of Guards that have not
	idle, cur *phase    // the phases as they were at the beginning; nil once they have passed
	hurried   bool      // a phase is diverted
	start     time.Time
	reported  bool // as stalled

	ended, stalls        atomic.Uint64
	last, longest, total uatomic.Duration
}

// beginLocked starts the next grace period and looks at all Readers. The caller holds gp.mu.
func (d *Domain) beginLocked() {
	gp := &d.gp
	gp.start, gp.reported = time.Now(), false
	// Pairs with the load of number in Reader.Lock: a section that shows n sees what came
	// before. A full barrier; where readers fence for themselves, pairs with announce and
	// AddShared.
	n := atomic.AddUint64(&d.number, 1)
	if !d.fenced && mutant != mutantNoFence {
		asm.Fence() // Pairs with the store in Reader.Lock and the Add in ReadLock.
	}
	gp.left = gp.left[:0]
	rec := d.readers.all.Load() // Pairs with the CompareAndSwap in take.
	if mutant == mutantSkipSlot && rec != nil {
		rec = rec.next
	}
	for ; rec != nil; rec = rec.next {
		if !passed(rec, n) {
			gp.left = append(gp.left, rec)
		}
	}
	gp.words = gp.words[:0]
	for w := range d.guards.allWords {
		if !passedWord(w, n) {
			gp.words = append(gp.words, w)
		}
	}
	// Without any Guard that counted until now, there is nothing to sum. Pairs with the Swap in guardSlow.
	gp.cur, gp.idle = d.current()
	if !d.guarded.Load() {
		gp.cur, gp.idle = nil, nil
	}
	switch mutant {
	case mutantOnePhase:
		gp.idle = nil
	case mutantSkipSlot:
		gp.cur = nil
	}
}

// passed reports whether the Reader of rec is out of each section that grace period n
// has to wait for. Pairs with the stores in Unlock, Refresh and Lock.
func passed(rec *record, n uint64) bool {
	seen := atomic.LoadUint64(&rec.seen)
	if mutant == mutantNarrow {
		return seen == 0 || uint32(seen) >= uint32(n)
	}
	return seen == 0 || seen >= n
}

// pollLocked looks once at those who have not passed, and reports whether nobody is left. The
// caller holds gp.mu.
func (d *Domain) pollLocked() bool {
	gp := &d.gp
	n := d.newest()
	left := gp.left[:0]
	for _, rec := range gp.left {
		if !passed(rec, n) {
			left = append(left, rec)
		}
	}
	gp.left = left
	words := gp.words[:0]
	for _, w := range gp.words {
		if !passedWord(w, n) {
			words = append(words, w)
		}
	}
	gp.words = words

	if gp.idle != nil && gp.idle.drained() {
		gp.idle = nil
	}
	if gp.cur != nil && gp.cur.drained() {
		gp.cur = nil
	}
	if cur, idle := d.current(); gp.idle == nil && gp.cur == cur && mutant != mutantNoFlip {
		d.setCurrent(idle) // F6
	}
	if raceEnabled {
		d.guards.phases[0].edge.Load() // Pairs with Guard.Unlock.
		d.guards.phases[1].edge.Load()
	}
	return len(left) == 0 && len(words) == 0 && gp.idle == nil && gp.cur == nil
}

// advance works towards the end of grace period target, without waiting, and reports whether
// it has ended.
func (d *Domain) advance(target uint64) bool {
	gp := &d.gp
	gp.mu.Lock()
	defer gp.mu.Unlock()
	for d.done.Load() < target {
		if n := d.newest(); n == d.done.Load() {
			d.beginLocked()
		}
		d.hook(hookScan)
		if !d.pollLocked() {
			return false
		}
		d.endLocked()
	}
	return true
}

func (d *Domain) endLocked() {
	gp := &d.gp
	d.calmLocked()
	if d.guards.crowded.Load() {
		d.guards.crowded.Store(false)
		d.divert()
	}
	took := time.Since(gp.start)
	gp.ended.Add(1)
	gp.last.Store(took)
	gp.total.Add(took)
	if took > gp.longest.Load() {
		gp.longest.Store(took)
	}
	d.done.Store(d.newest()) // Pairs with Poll and wait: what ended before is before them.
	d.moved.wake()
}

// arrive returns the number of the first grace period that begins after the call, and so after
// all that the caller unpublished (F1).
func (d *Domain) arrive() uint64 {
	// The caller's stores have to be visible before the load, or the grace period that we
	// take for a later one could begin before them. The Add is a full barrier, also in race
	// builds, where other atomic stores are weaker.
	arrivals := d.arrivals.Add(1)
	n := d.newest()
	if mutant == mutantNoShare {
		return n + 1 + arrivals%16
	}
	if mutant == mutantJoin && d.done.Load() != n {
		return n
	}
	return n + 1
}

// A role is held by the goroutine that drives grace periods. There are two, so that an
// expedited caller need not wait until a sleeping driver wakes up.
type role struct{ held atomic.Bool }

func (r *role) tryAcquire() bool { return !r.held.Load() && r.held.CompareAndSwap(false, true) }

func (r *role) acquire() {
	for !r.tryAcquire() {
		runtime.Gosched()
	}
}

func (r *role) release() { r.held.Swap(false) }

// wait returns when grace period target has ended, or ctx has.
func (d *Domain) wait(ctx context.Context, target uint64, expedited bool) error {
	r := &d.role[0]
	if expedited {
		r = &d.role[1]
	}
	for d.done.Load() < target {
		if r.tryAcquire() {
			return d.drive(ctx, r, target, expedited)
		}
		moved := d.moved.wait()
		if d.done.Load() >= target || !r.held.Load() {
			continue
		}
		select {
		case <-moved:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// drive looks at the readers again and again until target has ended. The caller has
// acquired r.
func (d *Domain) drive(ctx context.Context, r *role, target uint64, expedited bool) error {
	defer func() {
		r.release()
		d.moved.wake() // Whoever still waits takes the role.
	}()
	if d.advance(target) {
		return nil
	}
	b := newBackoff(expedited)
	for done := d.done.Load(); ; {
		if b.turning() {
			d.hurry()
		}
		if b.sleeps() {
			if d.flooded() {
				b.expedite()
			}
			d.checkStall()
		}
		if err := b.pause(ctx); err != nil {
			return err
		}
		if d.advance(target) {
			return nil
		}
		if now := d.done.Load(); now != done {
			done = now
			b.reset()
		}
	}
}

// hurry asks those whom the grace period waits for to make way at the end of their sections. A reader
// that was preempted in its section needs a processor, as does the driver, and where all are busy with
// goroutines that do not block, each of them would keep its own for 10 ms.
func (d *Domain) hurry() {
	gp := &d.gp
	gp.mu.Lock()
	defer gp.mu.Unlock()
	if d.done.Load() == d.newest() {
		return
	}
	for _, rec := range gp.left {
		atomic.StoreUint64(&rec.hold, holdHurry)
	}
	for _, w := range gp.words {
		// It may be freed, and claimed, meanwhile. Pairs with nothing: whether the mark is seen does not matter.
		if seen := atomic.LoadInt64(w); seen > 0 && !passedWord(w, d.newest()) {
			atomic.CompareAndSwapInt64(w, seen, seen|hurried)
		}
	}
	// Only a phase that is not current: new sections do not make way.
	cur, _ := d.current()
	for _, p := range [2]*phase{gp.idle, gp.cur} {
		if p != nil && p != cur && !p.hurry.Load() {
			p.hurry.Store(true)
			d.divert()
			gp.hurried = true
		}
	}
}

// calmLocked ends what hurry did to Guards.
func (d *Domain) calmLocked() {
	if d.gp.hurried {
		d.gp.hurried = false
		for i := range d.guards.phases {
			d.guards.phases[i].hurry.Store(false)
		}
		d.divert()
	}
}

// makeWay lets a driver run that waits for a processor.
func (d *Domain) makeWay() {
	if d.done.Load() != d.newest() {
		runtime.Gosched()
	}
}

// Synchronize waits for a grace period: when it returns nil, every section of d that had
// begun before the call has ended, and its end synchronizes before the return. Sections that
// begin during the call are not waited for. It does not matter whether they are of Readers or
// of Guards.
//
// Without sections it costs about one membarrier(2). Else it spins, yields, and then sleeps up to a
// millisecond between looks. Callers that come while a grace period is in progress share the
// next one. It allocates only where it has to wait for another caller, or with a ctx that can
// end.
//
// It returns an error that wraps ctx.Err() if ctx ends first, [ErrClosed], or [ErrDeadlock] in a
// callback of d. In a section of d it waits for its own caller until ctx ends, or returns ErrDeadlock if
// d was made with [WithDebug].
func (d *Domain) Synchronize(ctx context.Context) error {
	return d.synchronize(ctx, "Synchronize", false)
}

// SynchronizeExpedited is Synchronize for the impatient: it looks at the readers more often and
// uses more of a CPU for that, and does not wait for the next look of whoever waits already.
func (d *Domain) SynchronizeExpedited(ctx context.Context) error {
	return d.synchronize(ctx, "SynchronizeExpedited", true)
}

func (d *Domain) synchronize(ctx context.Context, what string, expedited bool) error {
	if err := d.mayWait(ctx, what); err != nil {
		return err
	}
	if err := d.mayBlock(what); err != nil {
		return err
	}
	d.flush()
	if err := d.wait(ctx, d.arrive(), expedited); err != nil {
		return fmt.Errorf("rcu: %s: %w", what, err)
	}
	return nil
}
