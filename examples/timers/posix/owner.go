package posix

import "time"

// An Owner is what timers belong to: a user of the [Table], as a process is a user of the kernel. To
// an Owner the timers of others do not exist. Its methods may be called by any goroutine; one that
// calls them often can do so for less through a [Thread]. Make it with [Table.NewOwner].
type Owner struct{ calls }

// A Thread makes the calls of an [Owner] for one goroutine at a time. Its lookups are cheaper; nothing
// else is different, and all Threads of an Owner have the same timers. Make it with
// [Owner.NewThread].
type Thread struct {
	calls
	close func()
}

// NewOwner returns a new Owner, which has no timers.
func (t *Table) NewOwner() *Owner {
	o := new(Owner)
	o.calls = calls{t.find, t, o}
	return o
}

// Exit deletes all timers of o. It looks at all timers of the Table.
func (o *Owner) Exit() { o.t.deleteAll(o) }

// NewThread returns a new Thread of o.
func (o *Owner) NewThread() *Thread {
	f, done := o.t.find.thread()
	return &Thread{calls{f, o.t, o}, done}
}

// Close gives back what the Thread has of the Table's Domain. No other method may be called after
// it.
func (th *Thread) Close() { th.close() }

// calls are the methods that Owner and Thread have in common.
type calls struct {
	find finder
	t    *Table
	o    *Owner
}

// Create makes a timer that goes by clock, and calls callback each time it expires, or nothing if that
// is nil. It is not armed before a Settime. It is deleted by Delete, Exit or [Table.Close].
//
// callback runs without locks in a goroutine of its own, and may do with the timer what it likes,
// such as Delete it. The callbacks of one timer do not overlap: if one takes so long that the timer
// expires again, once or more, another call follows it at once, and the expirations in between are
// counted as [Owner.Overruns].
//
// The errors are ErrInvalid for an unknown clock, ErrAgain when all ids are taken, and ErrClosed.
func (c *calls) Create(clock Clock, callback func()) (ID, error) {
	if clock > Monotonic {
		return 0, ErrInvalid
	}
	return c.t.create(c.o, clock, callback)
}

// Settime arms a timer to expire after value, and if interval is not 0, then again after each
// interval; the times are counted from the first, so that they do not drift. A value of 0 disarms it.
// What it was set to before is forgotten, with its overruns; a callback for which that time has come
// may still run beside the call or after it.
//
// The errors are ErrInvalid if value or interval is negative, and ErrNotFound.
func (c *calls) Settime(id ID, value, interval time.Duration) error {
	if value < 0 || interval < 0 {
		return ErrInvalid
	}
	m := c.find.lock(c.o, id)
	if m == nil {
		return ErrNotFound
	}
	// By the clock that nobody sets, also for Realtime: POSIX wants that of relative times.
	m.setLocked(time.Now().Add(value), interval, value > 0)
	m.mu.Unlock()
	return nil
}

// SettimeAt is Settime for a point in time. If that is in the past, the timer expires now. The zero Time
// disarms it. For [Realtime] it is the time that the wall clock will show, and for [Monotonic] it is
// as far away as it is now, whatever is done to the wall clock.
//
// The errors are ErrInvalid if interval is negative, and ErrNotFound.
func (c *calls) SettimeAt(id ID, at time.Time, interval time.Duration) error {
	if interval < 0 {
		return ErrInvalid
	}
	m := c.find.lock(c.o, id)
	if m == nil {
		return ErrNotFound
	}
	deadline := at.Round(0) // without a monotonic reading
	if m.clock == Monotonic {
		deadline = time.Now().Add(time.Until(at))
	}
	m.setLocked(deadline, interval, !at.IsZero())
	m.mu.Unlock()
	return nil
}

// Gettime returns how long it is until the timer expires next, 0 if it is not armed, and the
// interval after that, 0 if there is none. If the timer is about to expire, the first is what is left
// of the interval after that, or a nanosecond. The error is ErrNotFound.
func (c *calls) Gettime(id ID) (remaining, interval time.Duration, err error) {
	m := c.find.lock(c.o, id)
	if m == nil {
		return 0, 0, ErrNotFound
	}
	remaining, interval = m.remainingLocked(), m.interval
	m.mu.Unlock()
	return remaining, interval, nil
}

// Overruns returns how many expirations were passed over before the last callback, since the one
// before had not returned or since no goroutine was there to make it in time; [MaxOverruns] if they
// are more. The error is ErrNotFound.
func (c *calls) Overruns(id ID) (int, error) {
	m := c.find.lock(c.o, id)
	if m == nil {
		return 0, ErrNotFound
	}
	n := m.overruns
	m.mu.Unlock()
	return n, nil
}

// Delete deletes a timer: when it returns, the id names nothing. A callback for which the time has
// come is not waited for, but is the last. The error is ErrNotFound.
func (c *calls) Delete(id ID) error {
	m := c.find.lock(c.o, id)
	if m == nil {
		return ErrNotFound
	}
	m.owner = nil // Pairs with the look at it in lock.
	m.disarmLocked()
	m.mu.Unlock()
	c.find.remove(id)
	return nil
}
