package percpu

import (
	"iter"
	"sync"
	"sync/atomic"

	"github.com/quiesce-go/quiesce/asm"
)

// A Local holds one T for each CPU and lends out the caller's. Exclusion is by a
// lock for each CPU, so it also holds when the borrower is preempted, blocks, or
// goes on on another CPU; because it is this CPU's lock it is rarely contended,
// and with restartable sequences it is taken without a locked instruction. It is
// liburcu's and librseq's per-CPU lock, with a value.
//
// Locals are made by NewLocal, may be used by any number of goroutines and must
// not be copied.
type Local[T any] struct {
	_     noCopy
	locks asm.Block // one asm.Lock in each column
	init  func(cpu int) T

	// One for each slot of locks; once set, they stay.
	made  []atomic.Pointer[localSlot[T]] // those whose value was made
	slots []atomic.Pointer[localSlot[T]] // and those that somebody waits for, or makes
}

// A localSlot is padded to two cache lines from its neighbours, since the
// processor fetches lines in pairs.
type localSlot[T any] struct {
	_     [128]byte
	value T // of the holder of the slot's lock
	localLock
	_ [128]byte
}

// A localLock is what giving a slot back takes.
type localLock struct {
	lock *asm.Lock  // stored by the first holder, before made
	of   *asm.Block // has lock, whose memory goes to others when that is unreachable

	// waiters is how many goroutines are about to wait, or wait, for wake.
	waiters atomic.Int32
	mu      sync.Mutex
	// wake is what they sleep on: locked when it is made, unlocked and forgotten by an unlock that sees
	// waiters. It is no channel because that could not be shared with a testing/synctest bubble. Under mu.
	wake *sync.Mutex
}

// NewLocal returns a Local whose Ts are made by init when they are first
// wanted. Its argument is the number of the CPU that the T is for, where there are
// restartable sequences; higher numbers are for threads that fall back, and
// where there are none, for others. A nil init leaves the Ts zero.
func NewLocal[T any](init func(cpu int) T) *Local[T] {
	asm.Membarrier() // so that unlocking is cheap where wait can fence
	l := &Local[T]{
		init:  init,
		made:  make([]atomic.Pointer[localSlot[T]], asm.Slots()),
		slots: make([]atomic.Pointer[localSlot[T]], asm.Slots()),
	}
	l.locks.Alloc(1)
	return l
}

// Do runs fn with exclusive access to the caller's T. fn may do anything:
// block, panic, exit the goroutine, be moved to another CPU; nobody else has
// that T until fn is over. But a Do of the same Local inside fn waits for ever if
// it is on the same CPU.
//
// A Do synchronizes before the next one that gets the same T. Uncontended it
// takes as long as three or four Adds of a Counter, and does not allocate. It waits
// if the T is lent to a goroutine that blocks or was preempted.
func (l *Local[T]) Do(fn func(v *T)) {
	lock, slot := l.locks.TryLock(0)
	if lock == nil {
		lock, slot = l.lockSlow()
	}
	if mutant == mutantNoLock {
		lock.Unlock()
	}
	s := l.made[slot].Load() // Pairs with make.
	if s == nil {
		s = l.make(lock, slot)
	}
	back := &s.localLock
	defer func() { // One call, of one captured word: see docs/decisions/0007.
		if back.unlock() {
			back.wakeAll()
		}
	}()
	if raceEnabled {
		back.waiters.Load() // the race detector does not see the lock
	}
	fn(&s.value)
}

// make makes the T of a slot. The caller holds its lock, which is given back if init panics or
// exits the goroutine.
func (l *Local[T]) make(lock *asm.Lock, slot int) *localSlot[T] {
	s := l.makeSlot(slot)
	if raceEnabled {
		s.waiters.Load() // as in Do
	}
	s.lock = lock
	if mutant != mutantForget {
		s.of = &l.locks
	}
	done := false
	defer func() {
		if !done && s.unlock() {
			s.wakeAll()
		}
	}()
	if l.init != nil {
		s.value = l.init(slot)
	}
	l.made[slot].Store(s) // Pairs with the loads in Do and All.
	done = true
	return s
}

// makeSlot returns slot s, for a caller who holds its lock, or who waits for it.
func (l *Local[T]) makeSlot(slot int) *localSlot[T] {
	l.slots[slot].CompareAndSwap(nil, new(localSlot[T]))
	return l.slots[slot].Load()
}

// All returns an iterator over the Ts that were made, with the numbers that init
// was called with. It does not borrow them: the caller sees to it that nobody changes
// them, or has made them of atomics.
func (l *Local[T]) All() iter.Seq2[int, *T] {
	return func(yield func(int, *T) bool) {
		for slot := range l.made {
			if s := l.made[slot].Load(); s != nil && !yield(slot, &s.value) {
				return
			}
		}
	}
}

// lockSlow locks a slot of the caller's and returns the lock and the slot.
func (l *Local[T]) lockSlow() (lock *asm.Lock, slot int) {
	if l.slots == nil {
		panic("percpu: use of a Local that NewLocal has not made")
	}
	for tries := 0; ; tries++ {
		if lock, slot = l.locks.TryLock(0); lock != nil {
			return lock, slot
		}
		if tries < 16 {
			asm.Pause()
		} else {
			l.wait(asm.Slot())
		}
	}
}

// unlock gives a slot back and reports whether somebody has to be woken, which is left to the caller so that this is
// inlined. He may be anywhere by now, and may be the last one who knows the Local.
func (s *localLock) unlock() (waited bool) {
	if raceEnabled {
		s.waiters.Add(0)
	}
	s.lock.Unlock()
	// The load may pass the store. Pairs with the Fence in wait. Until it, s keeps the lock's memory, by s.of.
	return s.waiters.Load() > 0
}

func (s *localLock) wakeAll() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.wake != nil {
		s.wake.Unlock()
		s.wake = nil
	}
}

// wait waits until a slot is given back, if it is lent.
func (l *Local[T]) wait(slot int) {
	s := l.makeSlot(slot)
	s.waiters.Add(1)
	defer s.waiters.Add(-1)
	// Either the holder sees waiters, or we see that the slot is back. Pairs
	// with unlock, where Lock.Unlock is a full barrier if there is no Fence.
	if asm.Membarrier() == nil {
		asm.Fence()
	}
	s.mu.Lock()
	if s.wake == nil {
		s.wake = new(sync.Mutex)
		s.wake.Lock()
	}
	wake := s.wake
	s.mu.Unlock()
	if l.locks.Held(slot, 0) {
		wake.Lock()
		defer wake.Unlock() // for the next one who waits for it
	}
}
