package ns

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"sync/atomic"

	"github.com/quiesce-go/quiesce/idr"
	"github.com/quiesce-go/quiesce/rcu"
)

// The errors of this package.
var (
	ErrNotFound = errors.New("ns: no such namespace or object")
	ErrMember   = errors.New("ns: the task is in a namespace already")
	ErrOutside  = errors.New("ns: the task is in no namespace")
)

// An ID names a namespace of a [Table]. IDs are above 0, and one is given out again only after the
// teardown of the namespace that had it.
type ID int

// A Mount is what a namespace keeps that must outlive every walk that has found it. Unmount is called
// once, when there is none left.
type Mount interface{ Unmount() }

// A Strategy says how a namespace is torn down.
type Strategy int

const (
	// Synchronize has each task that tears a namespace down wait for a grace period of its own, with
	// the lock held that guards unmounting, so that the next one's begins after it.
	Synchronize Strategy = iota
	// Shared has it wait too, but without a lock: all who wait at the time share a grace period.
	Shared
	// Deferred has nobody wait: a goroutine tears down, after a grace period, what was left by then.
	Deferred
)

// Strategies are all there are, with their names as String gives them.
var Strategies = []Strategy{Synchronize, Shared, Deferred}

func (s Strategy) String() string {
	if s < Synchronize || s > Deferred {
		return fmt.Sprintf("Strategy(%d)", int(s))
	}
	return [...]string{"synchronize", "shared", "deferred"}[s]
}

// A Table has the namespaces that know each other by id. Make one with [New]. All methods may be called
// by any number of goroutines. A Table must not be copied.
type Table struct {
	domain *rcu.Domain
	mount  func(ID) (Mount, error)
	// after has a namespace torn down after a grace period, now or later. It is what the strategies
	// differ in.
	after func(context.Context, *namespace) error

	spaces idr.IDR[namespace]
	// unmounting holds a token while a task tears down by strategy Synchronize. It is a mutex that a
	// context can give up.
	unmounting chan struct{}

	mu    sync.Mutex
	dying int           // namespaces that their last task has left; guarded by mu
	idle  chan struct{} // closed when dying falls to 0, nil while it is 0; guarded by mu
	// Of strategy Deferred: whether somebody is tearing down, and what is next; guarded by mu.
	reaping bool
	doomed  []*namespace
}

// New returns a Table whose walks are read sections of d. mount makes the mount of a new namespace; it
// may use the Table. Many Tables may share a Domain, which must not be closed while namespaces are left.
// New panics if there is no such strategy, or mount is nil.
func New(d *rcu.Domain, s Strategy, mount func(ID) (Mount, error)) *Table {
	if s < Synchronize || s > Deferred || mount == nil {
		panic(fmt.Sprintf("ns: New needs a strategy and a function that mounts, not %v and %t", s, mount != nil))
	}
	t := &Table{domain: d, mount: mount, unmounting: make(chan struct{}, 1)}
	t.after = [...]func(context.Context, *namespace) error{t.synchronize, t.shared, t.deferred}[s]
	return t
}

// Walk calls fn with the mount of namespace id, which stays mounted until fn has returned, whoever leaves
// in the meantime. The caller need not be in the namespace, and does not keep others from leaving it,
// only what they leave from going. Walk returns ErrNotFound if there is no such namespace, or its
// last task has left.
func (t *Table) Walk(id ID, fn func(Mount)) error {
	g := t.domain.ReadLock()
	defer g.Unlock()
	n := t.spaces.Find(int(id))
	if n == nil {
		return ErrNotFound
	}
	fn(n.mount)
	return nil
}

// Len returns how many namespaces there are, with those that are being torn down.
func (t *Table) Len() int { return t.spaces.Len() }

// Barrier waits until no namespace is being torn down, and every object that was removed before the call
// was released. It returns an error that wraps ctx.Err() if ctx ends first, or the Domain's.
func (t *Table) Barrier(ctx context.Context) error {
	t.mu.Lock()
	idle := t.idle
	t.mu.Unlock()
	if idle != nil {
		select {
		case <-idle:
		case <-ctx.Done():
			return fmt.Errorf("ns: namespaces are still being torn down: %w", ctx.Err())
		}
	}
	return t.domain.Barrier(ctx)
}

// A namespace is never used again for another one. Once users is 0 it stays so.
type namespace struct {
	id      ID
	mount   Mount // used by tasks inside, and in sections that found the namespace in the Table
	users   atomic.Int64
	objects idr.IDR[object]
}

// enter makes the caller a user, unless there is none left.
func (n *namespace) enter() bool {
	for {
		users := n.users.Load()
		if users == 0 {
			return false
		}
		if n.users.CompareAndSwap(users, users+1) {
			return true
		}
	}
}

// create returns a new namespace with one user.
func (t *Table) create() (*namespace, error) {
	var n *namespace
	var failed error
	_, err := t.spaces.AllocFunc(1, math.MaxInt, func(id int) *namespace {
		m, err := t.mount(ID(id))
		if err != nil {
			failed = err
			return nil
		}
		n = &namespace{id: ID(id), mount: m}
		n.users.Store(1)
		return n
	})
	switch {
	case failed != nil:
		return nil, fmt.Errorf("ns: cannot mount: %w", failed)
	case err != nil:
		return nil, err
	}
	return n, nil
}

// leave takes a user from n, and has n torn down after the last one.
func (t *Table) leave(ctx context.Context, n *namespace) error {
	if n.users.Add(-1) > 0 { // All that the users did comes before the teardown by the last one.
		return nil
	}
	// Out of reach, but not out of the hands of walks that have found it. The id stays taken.
	t.spaces.Replace(int(n.id), nil)
	return t.after(ctx, n)
}

func (t *Table) synchronize(ctx context.Context, n *namespace) error {
	t.countDying(1)
	defer t.countDying(-1)
	select {
	case t.unmounting <- struct{}{}:
		defer func() { <-t.unmounting }()
		return t.wait(ctx, n)
	case <-ctx.Done():
		return t.late(ctx.Err(), n)
	}
}

func (t *Table) shared(ctx context.Context, n *namespace) error {
	t.countDying(1)
	defer t.countDying(-1)
	return t.wait(ctx, n)
}

// wait tears n down after a grace period.
func (t *Table) wait(ctx context.Context, n *namespace) error {
	if err := t.domain.Synchronize(ctx); err != nil {
		return t.late(err, n)
	}
	t.tearDown(n)
	return nil
}

// late leaves to others what a task had no time for.
func (t *Table) late(err error, n *namespace) error {
	t.reap(n)
	return fmt.Errorf("ns: left, but the namespace is torn down later: %w", err)
}

func (t *Table) deferred(_ context.Context, n *namespace) error {
	t.reap(n)
	return nil
}

// reap has n torn down later. All that comes while a grace period is under way shares the next one, and
// the goroutine after it.
func (t *Table) reap(n *namespace) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.countDyingLocked(1)
	t.doomed = append(t.doomed, n)
	if !t.reaping {
		t.reaping = true
		t.reapNextLocked()
	}
}

// reapNextLocked has all of t.doomed torn down after a grace period, and then what has come since. The
// caller holds t.mu, and t.reaping is set.
func (t *Table) reapNextLocked() {
	batch := t.doomed
	t.doomed = nil
	t.domain.Go(func() {
		for _, n := range batch {
			t.tearDown(n)
		}
		t.mu.Lock()
		defer t.mu.Unlock()
		t.countDyingLocked(-len(batch))
		if t.reaping = len(t.doomed) > 0; t.reaping {
			t.reapNextLocked()
		}
	})
}

// tearDown does what had to wait until no walk has n in its hands.
func (t *Table) tearDown(n *namespace) {
	n.mount.Unmount()
	for _, o := range n.objects.All() {
		o.release()
	}
	n.objects.Clear()
	t.spaces.Remove(int(n.id))
}

// countDying adds to the number of namespaces that are being torn down.
func (t *Table) countDying(delta int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.countDyingLocked(delta)
}

// countDyingLocked is countDying for who holds t.mu.
func (t *Table) countDyingLocked(delta int) {
	if t.idle == nil {
		t.idle = make(chan struct{})
	}
	if t.dying += delta; t.dying == 0 {
		close(t.idle)
		t.idle = nil
	}
}
