package rcu

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quiesce-go/quiesce/asm"
	"github.com/quiesce-go/quiesce/internal/tier"
)

var (
	// ErrClosed is returned by waits of a closed Domain.
	ErrClosed = errors.New("rcu: Domain is closed")
	// ErrDeadlock is returned by a wait that could never end, such as a Barrier
	// in a callback.
	ErrDeadlock = errors.New("rcu: wait would never end")
	// ErrBusy is returned by TryCall when too many callbacks are pending.
	ErrBusy = errors.New("rcu: too many callbacks pending")

	errDefault = errors.New("rcu: Close of the default Domain")
)

// A Domain is a set of readers and the grace periods that wait for them. Make one with
// [New], or share [Default]; the zero Domain cannot be used. All methods may be called by any
// number of goroutines. A Domain must not be copied. One that is no longer referenced, with
// nothing pending, is collected without a Close.
type Domain struct {
	// What every section reads and nobody writes but grace periods.

	// number is the number of the newest grace period that has begun. It starts at 1, since
	// 0 is what a Reader shows outside sections, and changes under gp.mu only. It must be
	// first: 64-bit alignment. Atomic, but not by type, since that is too much for the inliner
	// in Reader.Lock.
	number uint64
	guards guards

	slowReaders bool // sections take their slow paths, for one of the next two reasons or for debug
	wordless    bool // Guards are counted: slowReaders, or there are no restartable sequences
	fenced      bool // readers execute full barriers, since Fence cannot do it for them
	hooks       *hooks

	_ [lineSize]byte

	// done is the number of the newest grace period that has ended. number is done, or
	// done+1 while one is in progress. It changes under gp.mu.
	done     atomic.Uint64
	gp       gracePeriod
	role     [2]role   // who drives: 0 for Synchronize and the worker, 1 for the expedited
	moved    broadcast // done, role or the worker's progress changed
	guarded  atomic.Bool
	divertMu sync.Mutex

	_ [lineSize]byte

	readers  readers
	arrivals atomic.Uint64 // see arrive

	_ [lineSize]byte

	worker worker

	shared       bool // this is the default Domain
	log          *slog.Logger
	debug        *debugger // see WithDebug
	stallTimeout time.Duration
	stallHandler func(Stall)
}

// An Option changes what New makes.
type Option func(*Domain)

// WithLogger has a Domain report through l what a program should know of, instead of
// through [slog.Default].
func WithLogger(l *slog.Logger) Option {
	return func(d *Domain) { d.log = l }
}

// New returns a new Domain. It decides whether readers need fences, see [Stats.ReaderMode].
func New(opts ...Option) *Domain {
	d := new(Domain)
	d.number = 1
	d.done.Store(1)
	d.fenced = asm.Membarrier() != nil
	d.stallTimeout = defaultStallTimeout
	for _, o := range opts {
		o(d)
	}
	d.slowReaders = d.fenced || d.hooks != nil || d.debug != nil
	if d.slowReaders || tier.Current() != tier.RSEQ {
		d.wordless = true
	}
	d.worker.intake = newIntake()
	d.worker.setStride()
	d.worker.run = d.work
	d.newGuards()
	return d
}

// newest returns the number of the newest grace period that has begun.
func (d *Domain) newest() uint64 { return atomic.LoadUint64(&d.number) }

var defaultDomain = sync.OnceValue(func() *Domain {
	d := New()
	d.shared = true
	return d
})

// Default returns the Domain shared by all who need no isolation. A long section in it holds
// up everybody's grace periods. It is never closed.
func Default() *Domain { return defaultDomain() }

// isClosed reports whether d was closed.
func (d *Domain) isClosed() bool { return d.worker.state.Load() == workerClosed }

func (d *Domain) mustBeOpen(what string) {
	if d.isClosed() {
		panic("rcu: " + what + " of a closed Domain")
	}
}

// mustBeMade panics in the zero Domain, before it does anything silently wrong.
func (d *Domain) mustBeMade() {
	if d.newest() == 0 {
		panic("rcu: use of a Domain that was not made by New")
	}
}

func (d *Domain) logger() *slog.Logger { return orDefault(d.log) }

// mayWait returns why a call of what must not wait.
func (d *Domain) mayWait(ctx context.Context, what string) error {
	d.mustBeMade()
	var err error
	switch {
	case d.worker.isCaller():
		err = ErrDeadlock
	case d.isClosed():
		err = ErrClosed
	default:
		err = ctx.Err()
	}
	if err != nil {
		return fmt.Errorf("rcu: %s: %w", what, err)
	}
	return nil
}
