package rcu

import (
	"runtime"
	"sync/atomic"
	"unsafe"
)

// The door for the tests.

const (
	HookLoaded  = hookLoaded
	HookQueued  = hookQueued
	HookScan    = hookScan
	HookDrained = hookDrained
	HookBarrier = hookBarrier

	RaceEnabled = raceEnabled
	RecordSize  = unsafe.Sizeof(record{})
	ReaderSize  = unsafe.Sizeof(Reader{})
	ShardSize   = unsafe.Sizeof(shard{})
)

// Mutant is the deliberate fault of this build.
var Mutant = mutant

// WithHook has f called at a place of the protocol.
func WithHook(i int, f func()) Option {
	return func(d *Domain) {
		if d.hooks == nil {
			d.hooks = new(hooks)
		}
		d.hooks[i] = f
	}
}

// WithFences is for the mode that readers are in where there is no membarrier.
func WithFences() Option { return func(d *Domain) { d.fenced = true } }

// WithoutWords has all Guards counted.
func WithoutWords() Option {
	return func(d *Domain) { d.wordless = true }
}

// Words returns how many Guards have a word.
func (d *Domain) Words() (n int) {
	for w := range d.guards.allWords {
		if atomic.LoadInt64(w) != 0 {
			n++
		}
	}
	return n
}

// Hurried reports whether g's Unlock makes way.
func (g Guard) Hurried() bool {
	if v := atomic.LoadInt64(g.word); v != counted {
		return v < 0
	}
	return (*phase)(unsafe.Pointer(g.word)).hurry.Load()
}

// WithNumber has grace periods begin after n.
func WithNumber(n uint64) Option {
	return func(d *Domain) {
		d.number = n
		d.done.Store(n)
	}
}

// InProgress reports whether a grace period is in progress, and has looked at the readers.
func (d *Domain) InProgress() bool {
	d.gp.mu.Lock()
	defer d.gp.mu.Unlock()
	return d.done.Load() != d.newest()
}

// CurrentPhase is the phase of new Guards, 0 or 1.
func (d *Domain) CurrentPhase() int {
	if cur, _ := d.current(); cur == &d.guards.phases[1] {
		return 1
	}
	return 0
}

// Preset makes both counts of both phases n.
func (d *Domain) Preset(n int64) {
	for i := range d.guards.phases {
		d.guards.phases[i].AddShared(begins, n)
		d.guards.phases[i].AddShared(ends, n)
	}
}

// HasWorker reports whether d has a goroutine.
func (d *Domain) HasWorker() bool {
	s := d.worker.state.Load()
	return s == workerRunning || s == workerDraining
}

// Arrivals returns how many have asked when their grace period will be.
func (d *Domain) Arrivals() uint64 { return d.arrivals.Load() }

// Passes returns how many passes the worker has begun.
func (d *Domain) Passes() uint64 { return d.worker.begun.Load() }

// Waiters reports whether somebody waits for another who drives.
func (d *Domain) Waiters() bool { return d.moved.waiting() }

// Collect runs the garbage collector until cleanups have run that were due.
func Collect() {
	for range 3 {
		done := make(chan struct{})
		runtime.AddCleanup(new([16]*int), func(c chan struct{}) { close(c) }, done)
		runtime.GC()
		<-done
	}
}

// Hurried reports whether r's next Unlock makes way.
func (r *Reader) Hurried() bool { return atomic.LoadUint64(&r.own.hold) == holdHurry }

// Records returns how many records d has.
func (d *Domain) Records() (n int) {
	for rec := d.readers.all.Load(); rec != nil; rec = rec.next {
		n++
	}
	return n
}

// Left returns how many Readers the grace period in progress still looks at.
func (d *Domain) Left() int {
	d.gp.mu.Lock()
	defer d.gp.mu.Unlock()
	return len(d.gp.left)
}

// Crowded reports whether all Guards are counted until a grace period has ended.
func (d *Domain) Crowded() bool { return d.guards.crowded.Load() }

// HoldDivert keeps all out who change how Guards begin, until the function that it returns is called.
func (d *Domain) HoldDivert() (release func()) {
	d.divertMu.Lock()
	return d.divertMu.Unlock
}
