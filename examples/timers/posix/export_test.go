package posix

import (
	"reflect"
	"slices"

	"github.com/quiesce-go/quiesce/rcu"
)

const CacheLine = cacheLine

var TimerSize = reflect.TypeFor[timer]().Size()

// NewBroken is New without the grace period: a timer is used again at once.
func NewBroken(d *rcu.Domain) *Table {
	t := newTable()
	t.find = &broken{&guarded{t, d}}
	return t
}

type broken struct{ *guarded }

func (f *broken) remove(id ID) { f.t.ids.Remove(int(id)).release() }

// SetMaxID makes id the highest that t gives out.
func (t *Table) SetMaxID(id ID) { t.maxID = int(id) }

// Find returns a function that tells what has become of the timer that a lookup has found now: whether
// it has an owner, and whether it may be used again.
func (t *Table) Find(id ID) (look func() (owned, recyclable bool)) {
	m := t.ids.Find(int(id))
	return func() (bool, bool) {
		t.mu.Lock()
		defer t.mu.Unlock()
		if slices.Contains(t.free, m) {
			return m.owner != recycled, true
		}
		m.mu.Lock()
		defer m.mu.Unlock()
		return m.owner != nil, false
	}
}
