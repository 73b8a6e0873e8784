package posix

import (
	"sync"

	"github.com/quiesce-go/quiesce/rcu"
)

// A finder is all that differs between the twins: what keeps a timer that was found from being used
// again before it is locked.
type finder interface {
	// lock returns the timer of o with this id, locked, or nil if there is none.
	lock(o *Owner, id ID) *timer
	// remove makes a deleted timer's id unknown, and drops the use that lookups have of it, when
	// that is over. It does not wait for that.
	remove(id ID)
	// read runs fn while no timer that fn finds is used again.
	read(fn func())
	// thread returns the finder for one goroutine, and what ends it.
	thread() (finder, func())
}

// lock is what lookups do inside, whatever it is that they are inside of.
func (t *Table) lock(o *Owner, id ID) *timer {
	m := t.ids.Find(int(id))
	if m == nil {
		return nil
	}
	m.mu.Lock()
	// Only now is there an answer to whose it is, and to whether it still exists: a timer that was
	// deleted after Find has no owner. Pairs with Delete.
	if owner := m.owner; owner != o {
		m.mu.Unlock()
		if owner == recycled {
			panic("posix: a lookup found a timer that waits to be used again")
		}
		return nil
	}
	return m
}

// locked is the state before the patch: all lookups take one lock, and have it until they have
// that of the timer.
type locked struct {
	mu sync.Mutex
	t  *Table

	_ [cacheLine]byte // to be fair: the lock shares its line with nobody
}

func (f *locked) lock(o *Owner, id ID) *timer {
	f.mu.Lock()
	m := f.t.lock(o, id)
	f.mu.Unlock()
	return m
}

func (f *locked) remove(id ID) {
	f.mu.Lock()
	m := f.t.ids.Remove(int(id))
	f.mu.Unlock()
	m.release() // Lookups that found it had it locked, and have seen that it has no owner.
}

func (f *locked) read(fn func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	fn()
}

func (f *locked) thread() (finder, func()) { return f, func() {} }

// guarded is the state after the patch, for any goroutine.
type guarded struct {
	t *Table
	d *rcu.Domain
}

func (f *guarded) lock(o *Owner, id ID) *timer {
	g := f.d.ReadLock()
	m := f.t.lock(o, id)
	g.Unlock()
	return m
}

// The id stays taken for as long as the timer can be found: who takes it next is a stranger to all
// who look the old one up.
func (f *guarded) remove(id ID) { f.t.ids.RemoveRetire(f.d, int(id), (*timer).release) }

func (f *guarded) read(fn func()) { f.d.Read(fn) }

func (f *guarded) thread() (finder, func()) {
	r := f.d.NewReader()
	return &reading{f, r}, r.Close
}

// reading is the state after the patch, for one goroutine. Measured with 16 goroutines, a Gettime takes
// 19 ns of a CPU with it; with guarded it takes 22 where there are restartable sequences, and 43
// where there are none.
type reading struct {
	*guarded
	r *rcu.Reader
}

func (f *reading) lock(o *Owner, id ID) *timer {
	f.r.Lock()
	m := f.t.lock(o, id)
	f.r.Unlock()
	return m
}
