package percpu

import (
	"sync"
	"sync/atomic"

	"github.com/quiesce-go/quiesce/asm"
	"github.com/quiesce-go/quiesce/internal/gate"
)

// An RWMutex is a reader/writer lock with the methods and the rules of
// sync.RWMutex, for data that is read much more often than written: RLock and
// RUnlock touch a cache line of this CPU only, so readers do not slow each other
// down. A writer pays for it: Lock interrupts every CPU that runs the program.
//
// The zero RWMutex is unlocked. It must not be copied after first use. It may be
// used by any number of goroutines; as with sync.RWMutex, a goroutine that holds
// a read lock must not take another, since a writer may wait in between, and
// RUnlock may be called by any goroutine.
//
// Ordering is sync.RWMutex's: an Unlock synchronizes before the next RLock and
// Lock, and an RUnlock before the next Lock, that returns.
//
// Cost: an RLock or RUnlock compiles to one assembly call of 2 to 3 ns and does
// not allocate; a Lock takes a microsecond or two beside what it waits. Where
// restartable sequences or the fence that aborts them are missing it is a
// sync.RWMutex: [asm.Gates] tells.
//
// An RUnlock too many panics, or the next Lock or TryLock does. But as with
// sync.RWMutex, while readers are inside it takes the place of one of theirs: then
// the RUnlock of the last one is the one too many.
//
// It is the kernel's percpu_rw_semaphore, with a reader's path that has nothing
// to check: a writer shuts the gate that readers count themselves in by.
type RWMutex struct {
	gated
	mode  atomic.Uint32
	inner sync.RWMutex // held by writers, and by readers who found the gate shut

	// The writer sleeps on wake, which is locked but for the moment in which a reader wakes him. A
	// channel would belong to a testing/synctest bubble, if there is one, and be of no use outside.
	asleep atomic.Bool // the writer is about to lock wake, or waits for it; reset by who wakes him
	wake   sync.Mutex
}

// The modes of an RWMutex.
const (
	modeUnknown = iota
	modeSharded
	modePlain // inner is all there is
)

// RLock locks rw for reading.
func (rw *RWMutex) RLock() { rw.gate.Add(gate.Owner{}, entries, byRWMutex) }

// RUnlock undoes one RLock.
func (rw *RWMutex) RUnlock() { rw.gate.Add(gate.Owner{}, exits, byRWMutex) }

// slow is RLock and RUnlock when the gate is shut, or the thread cannot run
// sequences, or there is no gate.
func (rw *RWMutex) slow(i int) {
	switch {
	case rw.plain() && i == entries:
		rw.inner.RLock()
	case rw.plain():
		rw.inner.RUnlock()
	case rw.gate.TryAdd(i, byRWMutex):
	case i == entries:
		rw.inner.RLock()
		rw.enter()
		rw.inner.RUnlock()
	default:
		rw.gate.Block.AddShared(exits, byRWMutex)
		if rw.inside(byRWMutex) < 0 {
			rw.gate.Block.AddShared(exits, -byRWMutex)
			panic(tooManyRUnlocks)
		}
		// Either the writer's last look sees the exit, or we see asleep. Pairs with sleep.
		if rw.asleep.Load() && rw.asleep.CompareAndSwap(true, false) {
			rw.wake.Unlock()
		}
	}
}

// enter counts a reader in who holds inner for reading, so that no writer can
// have the gate shut.
func (rw *RWMutex) enter() {
	if !rw.gate.TryAdd(entries, byRWMutex) {
		panic("percpu: an RWMutex is shut without a writer")
	}
}

// TryRLock tries to lock rw for reading and reports whether it did.
func (rw *RWMutex) TryRLock() bool {
	if rw.plain() {
		return rw.inner.TryRLock()
	}
	if rw.gate.TryAdd(entries, byRWMutex) {
		return true
	}
	if !rw.inner.TryRLock() {
		return false
	}
	rw.enter()
	rw.inner.RUnlock()
	return true
}

// Lock locks rw for writing.
func (rw *RWMutex) Lock() {
	rw.inner.Lock()
	if rw.plain() || mutant == mutantNoLook {
		return
	}
	rw.gate.Shut()
	for spins := 0; !rw.drained(); spins++ {
		if spins < 100 {
			asm.Pause()
		} else {
			rw.sleep()
		}
	}
}

// sleep waits until a reader leaves, unless none is inside. The gate is shut.
func (rw *RWMutex) sleep() {
	rw.asleep.Store(true) // Pairs with slow.
	if rw.inside(byRWMutex) <= 0 && rw.asleep.CompareAndSwap(true, false) {
		return // and nobody unlocks wake
	}
	rw.wake.Lock()
}

const tooManyRUnlocks = "percpu: RUnlock of an RWMutex that is not locked for reading"

// drained reports whether no reader is inside. The caller holds inner. If there were too
// many RUnlocks, rw is not locked when drained panics.
func (rw *RWMutex) drained() bool {
	n := rw.inside(byRWMutex)
	if n < 0 {
		rw.Unlock()
		panic(tooManyRUnlocks)
	}
	return n == 0
}

// TryLock tries to lock rw for writing and reports whether it did.
func (rw *RWMutex) TryLock() bool {
	if !rw.inner.TryLock() {
		return false
	}
	if rw.plain() {
		return true
	}
	if rw.drained() { // else save the fence
		rw.gate.Shut()
		if rw.drained() {
			return true
		}
		rw.gate.Open()
	}
	rw.inner.Unlock()
	return false
}

// Unlock unlocks rw for writing. As with sync.RWMutex it is a fatal error if rw
// is not locked for writing.
func (rw *RWMutex) Unlock() {
	if rw.mode.Load() == modeSharded {
		rw.gate.Open()
	}
	rw.inner.Unlock()
}

// RLocker returns a sync.Locker whose methods are RLock and RUnlock.
func (rw *RWMutex) RLocker() sync.Locker { return (*rlocker)(rw) }

type rlocker RWMutex

func (r *rlocker) Lock()   { (*RWMutex)(r).RLock() }
func (r *rlocker) Unlock() { (*RWMutex)(r).RUnlock() }

// plain reports whether rw has no gate. The first call decides that.
func (rw *RWMutex) plain() bool {
	mode := rw.mode.Load()
	if mode == modeUnknown {
		mode = rw.decide()
	}
	return mode == modePlain
}

// deciding serializes the first uses of RWMutexes.
var deciding sync.Mutex

func (rw *RWMutex) decide() uint32 {
	deciding.Lock()
	defer deciding.Unlock()
	if mode := rw.mode.Load(); mode != modeUnknown {
		return mode
	}
	if !asm.Gates() {
		rw.mode.Store(modePlain)
		return modePlain
	}
	rw.wake.Lock()
	rw.gate.Make(gatedWords)
	rw.gate.Open()
	rw.mode.Store(modeSharded) // Pairs with the loads in plain and Unlock: wake and the gate are made.
	return modeSharded
}
