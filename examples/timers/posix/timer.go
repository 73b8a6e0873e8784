package posix

import (
	"math"
	"sync"
	"time"
)

// A Clock is what a timer goes by.
type Clock uint8

const (
	Realtime  Clock = iota // the time of day, which may be set: CLOCK_REALTIME
	Monotonic              // the time since some moment: CLOCK_MONOTONIC
)

// MaxOverruns is where the count of overruns stops, DELAYTIMER_MAX.
const MaxOverruns = math.MaxInt32

// cacheLine is the unit in which processors share memory. Some fetch two lines at once, and some
// have lines of 128 bytes.
const cacheLine = 128

// A timer is one timer after the other: the object is used again.
//
// Whether it expires is decided by its state alone. The runtime's timer only has expire called, and
// does so too often rather than too seldom: it cannot be stopped when its goroutine is on its way.
//
//  1. Who has found a timer in a read section may lock it, and then has to look at owner.
//  2. Who has seen that it is the owner may use the timer until mu is unlocked, since before
//     uses becomes 0 somebody has to lock mu to delete it.
//  3. uses becomes 0 once, when the sections of 1 and the calls of expire are over.
type timer struct {
	mu sync.Mutex // guards all below but table and runtime, which never change

	owner    *Owner // nil after Delete, and recycled while it is in Table.free
	clock    Clock
	armed    bool          // deadline is to come, or was not yet acted on
	busy     bool          // a callback is running; who made it looks at the state when it has returned
	deadline time.Time     // of the next expiration; with a monotonic reading unless it goes by the wall clock
	interval time.Duration // 0 if armed is not set
	overruns int
	callback func()

	// uses is one for the id, until no lookup can have the timer, and one for each call of expire that
	// is to come or is running.
	uses int

	table   *Table
	runtime *time.Timer // calls expire

	_ [cacheLine - 12*8]byte // with 64-bit words; so that timers share no line
}

// recycled is the owner of timers that wait to be used again. No lookup sees it.
var recycled = new(Owner)

func newTimer(t *Table) *timer {
	m := &timer{table: t}
	m.runtime = time.AfterFunc(math.MaxInt64, m.expire)
	m.runtime.Stop()
	m.clear()
	return m
}

// init makes m a new timer. Nobody else has it.
func (m *timer) init(o *Owner, clock Clock, callback func()) {
	m.owner, m.clock, m.callback = o, clock, callback
	m.interval, m.overruns = 0, 0
	m.uses = 1
}

// clear leaves nothing in m that anybody could use. Nobody else has it, and that it is written to
// without its lock lets the race detector see to that.
func (m *timer) clear() {
	m.owner, m.callback = recycled, nil
	m.deadline, m.interval, m.overruns = time.Time{}, poison, poison
}

// poison is what one sees who should not have looked.
const poison = -0x5ead

// setLocked sets m to what is asked for. m.mu is held.
func (m *timer) setLocked(deadline time.Time, interval time.Duration, armed bool) {
	if !armed {
		m.disarmLocked()
		return
	}
	m.deadline, m.interval, m.armed, m.overruns = deadline, interval, true, 0
	m.wakeLocked(time.Until(deadline))
}

// disarmLocked keeps m from expiring. m.mu is held.
func (m *timer) disarmLocked() {
	m.interval, m.armed, m.overruns = 0, false, 0
	if m.runtime.Stop() {
		m.uses--
	}
}

// wakeLocked has expire called after d. m.mu is held.
func (m *timer) wakeLocked(d time.Duration) {
	if !m.runtime.Reset(d) {
		m.uses++
	}
}

// remainingLocked returns the time until the next expiration, as Gettime does. m.mu is held.
func (m *timer) remainingLocked() time.Duration {
	if !m.armed {
		return 0
	}
	d := time.Until(m.deadline)
	switch {
	case d > 0:
		return d
	case m.interval > 0:
		return m.interval + d%m.interval // d is not positive, nor is the remainder
	}
	return 1
}

// expire makes the callbacks that are due, in a goroutine that the runtime started for it.
func (m *timer) expire() {
	m.mu.Lock()
	defer func() { // also if a callback ends the goroutine
		if m.armed && !m.busy {
			m.wakeLocked(time.Until(m.deadline))
		}
		m.leave()
	}()
	// If it is not yet due, this call was meant for an earlier setting, or the wall clock was set back.
	for m.armed && !m.busy && time.Until(m.deadline) <= 0 {
		m.expireLocked()
	}
}

// expireLocked is one expiration, with those before it that nobody was told of. m.mu is held, but not
// during the callback. What expires meanwhile is seen when it has returned.
func (m *timer) expireLocked() {
	if m.interval == 0 {
		m.armed = false
	} else {
		late := time.Since(m.deadline)
		m.overruns = int(min(late/m.interval, MaxOverruns))
		m.deadline = m.deadline.Add(late - late%m.interval).Add(m.interval)
	}
	if m.callback == nil {
		return
	}
	m.busy = true
	callback := m.callback
	m.mu.Unlock()
	defer func() {
		m.mu.Lock()
		m.busy = false
	}()
	callback()
}

// release drops a use of m. m.mu is not held.
func (m *timer) release() {
	m.mu.Lock()
	m.leave()
}

// leave drops a use of m, and unlocks m.mu.
func (m *timer) leave() {
	m.uses--
	last := m.uses == 0
	m.mu.Unlock()
	if last {
		m.table.recycle(m)
	}
}
