package ns

import (
	"context"

	"github.com/quiesce-go/quiesce/rcu"
)

// Find returns a function that enters the namespace that Find has found, as Enter does some time after.
func (t *Table) Find(id ID) (enter func() bool) { return t.spaces.Find(int(id)).enter }

// NewBroken is New without the grace period.
func NewBroken(d *rcu.Domain, mount func(ID) (Mount, error)) *Table {
	t := New(d, Shared, mount)
	t.after = func(_ context.Context, n *namespace) error {
		t.tearDown(n)
		return nil
	}
	return t
}

// NewTwice is New with a grace period after which a namespace is torn down by its last task and by
// somebody else.
func NewTwice(d *rcu.Domain, mount func(ID) (Mount, error)) *Table {
	t := New(d, Shared, mount)
	t.after = func(ctx context.Context, n *namespace) error {
		t.reap(n)
		return t.shared(ctx, n)
	}
	return t
}

// NewEarly is New with strategy Deferred, where what has come during a grace period does not wait for the
// next one.
func NewEarly(d *rcu.Domain, mount func(ID) (Mount, error)) *Table {
	t := New(d, Deferred, mount)
	t.after = func(_ context.Context, n *namespace) error {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.countDyingLocked(1)
		if t.doomed = append(t.doomed, n); len(t.doomed) == 1 {
			d.Go(func() {
				t.mu.Lock()
				batch := t.doomed
				t.doomed = nil
				t.mu.Unlock()
				for _, n := range batch {
					t.tearDown(n)
				}
				t.countDying(-len(batch))
			})
		}
		return nil
	}
	return t
}
