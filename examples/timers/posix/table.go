package posix

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"

	"github.com/quiesce-go/quiesce/idr"
	"github.com/quiesce-go/quiesce/rcu"
)

// The errors of this package, with what POSIX calls them.
var (
	ErrInvalid  = errors.New("posix: invalid argument")         // EINVAL
	ErrNotFound = errors.New("posix: no such timer")            // EINVAL as well
	ErrAgain    = errors.New("posix: no free id for the timer") // EAGAIN
	ErrClosed   = errors.New("posix: Table is closed")
)

// An ID names a timer of a [Table]. Ids are above 0, and the id of a timer that was deleted is the
// last to be given out again.
type ID int

// A Table has the timers of its owners. Make one with [New] or [NewLocked]. All methods may be
// called by any number of goroutines. A Table must not be copied.
type Table struct {
	ids  idr.IDR[timer]
	find finder

	_ [cacheLine]byte // what Create and Delete write is not to take the fields above from lookups

	mu      sync.Mutex
	maxID   int           // tests make it smaller
	closed  bool          // guarded by mu
	live    int           // timers not in free; guarded by mu
	free    []*timer      // guarded by mu
	drained chan struct{} // closed when closed is set and live is 0
}

// New returns a Table whose lookups are read sections of d. Many Tables may share a Domain. d must
// not be closed before the Table is.
func New(d *rcu.Domain) *Table {
	t := newTable()
	t.find = &guarded{t, d}
	return t
}

// NewLocked returns a Table that has one mutex for the lookups of all timers.
func NewLocked() *Table {
	t := newTable()
	t.find = &locked{t: t}
	return t
}

func newTable() *Table {
	return &Table{maxID: math.MaxInt32, drained: make(chan struct{})}
}

// create returns the id of a new timer, of owner o.
func (t *Table) create(o *Owner, clock Clock, callback func()) (ID, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return 0, ErrClosed
	}
	var m *timer
	if n := len(t.free); n > 0 {
		m = t.free[n-1]
		t.free = t.free[:n-1]
	} else {
		m = newTimer(t)
	}
	m.init(o, clock, callback)
	// The timer has to be complete: from here on, others may find it.
	id, err := t.ids.AllocCyclic(m, 1, t.maxID)
	if err != nil {
		m.clear()
		t.free = append(t.free, m)
		return 0, ErrAgain
	}
	t.live++
	return ID(id), nil
}

// recycle takes a timer that nobody else can have any more.
func (t *Table) recycle(m *timer) {
	m.clear()
	t.mu.Lock()
	defer t.mu.Unlock()
	t.free = append(t.free, m)
	t.live--
	t.maybeDrainedLocked()
}

// maybeDrainedLocked tells Close when the last timer has gone. t.mu is held.
func (t *Table) maybeDrainedLocked() {
	if t.closed && t.live == 0 {
		close(t.drained)
	}
}

// Len returns the number of timers that exist. A deleted one counts until it can be used again.
func (t *Table) Len() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.live
}

// Close deletes all timers and waits until their callbacks have returned and nothing is left of them
// but memory. After it, and beside it, no timer can be created. If ctx ends first its error is
// returned, and what Close waits for still happens; Close may be called again. Close waits for a grace
// period, so it must not be called in a read section of the Table's Domain, nor in a callback: it
// would wait for its caller, until ctx ends.
func (t *Table) Close(ctx context.Context) error {
	t.mu.Lock()
	if !t.closed {
		t.closed = true
		t.maybeDrainedLocked()
	}
	gone := t.live == 0
	t.mu.Unlock()
	if gone {
		return nil
	}
	t.deleteAll(nil)
	select {
	case <-t.drained:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("posix: Close: %w", ctx.Err())
	}
}

// deleteAll deletes the timers of o, or all timers if o is nil.
func (t *Table) deleteAll(o *Owner) {
	type found struct {
		o  *Owner
		id ID
	}
	var all []found
	t.find.read(func() {
		for id, m := range t.ids.All() {
			m.mu.Lock()
			if m.owner != nil && (o == nil || m.owner == o) {
				all = append(all, found{m.owner, ID(id)})
			}
			m.mu.Unlock()
		}
	})
	for _, f := range all {
		_ = f.o.Delete(f.id) // Somebody else's Delete may be faster.
	}
}
