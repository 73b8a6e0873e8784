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
	locks asm.Block // one word in each column: 0, or 1 while the slot is lent
	slots []localSlot[T]
	init  func(cpu int) T
}

// A localSlot belongs to a column of locks. Slots are padded to two cache lines
// from each other, since the processor fetches lines in pairs.
type localSlot[T any] struct {
	value T // the borrower's
	// made says that value was made; stored by the borrower.
	made atomic.Bool

	// waiters is how many goroutines are about to wait, or wait, for wake.
	waiters atomic.Int32
	mu      sync.Mutex
	wake    chan struct{} // closed and forgotten by an unlock that sees waiters; under mu

	_ [128]byte
}

// NewLocal returns a Local whose Ts are made by init when they are first
// wanted, for the column that they are for: a CPU number where there are
// restartable sequences. There are more columns, for threads that fall back.
// A nil init leaves them zero.
func NewLocal[T any](init func(cpu int) T) *Local[T] {
	asm.Membarrier() // so that Release is cheap where wait can fence
	l := &Local[T]{slots: make([]localSlot[T], asm.ColumnCount()), init: init}
	l.locks.Alloc(1)
	return l
}

// Do runs fn with exclusive access to the caller's T. fn may do anything:
// block, panic, exit the goroutine, be moved to another CPU; nobody else has
// that T until fn is over. But a Do of the same Local inside fn waits for ever if
// it is on the same CPU.
//
// A Do synchronizes before the next one that gets the same T. Uncontended it
// takes about as long as two Adds of a Counter, and does not allocate. It waits
// if the T is lent to a goroutine that blocks or was preempted.
func (l *Local[T]) Do(fn func(v *T)) {
	col := l.lock()
	defer l.unlock(col)
	s := &l.slots[col]
	if !s.made.Load() {
		if l.init != nil {
			s.value = l.init(col)
		}
		s.made.Store(true)
	}
	fn(&s.value)
}

// All returns an iterator over the Ts that were made, with their columns. It
// does not borrow them: the caller sees to it that nobody changes them, or has
// made them of atomics.
func (l *Local[T]) All() iter.Seq2[int, *T] {
	return func(yield func(int, *T) bool) {
		for col := range l.slots {
			if s := &l.slots[col]; s.made.Load() && !yield(col, &s.value) {
				return
			}
		}
	}
}

// lock borrows the slot of the caller's column and returns the column.
func (l *Local[T]) lock() int {
	for tries := 0; ; tries++ {
		if col, ok := l.locks.SwapHere(0, 0, 1); ok {
			if raceEnabled {
				l.slots[col].waiters.Load() // the race detector does not see locks
			}
			return col
		}
		if tries < 16 {
			asm.Pause()
		} else {
			l.wait(asm.Column())
		}
	}
}

// unlock gives slot col back. The caller may be anywhere by now.
func (l *Local[T]) unlock(col int) {
	s := &l.slots[col]
	if raceEnabled {
		s.waiters.Add(0)
	}
	l.locks.Release(col, 0)
	// The load may pass the store. Pairs with the Fence in wait.
	if s.waiters.Load() > 0 {
		s.mu.Lock()
		if s.wake != nil {
			close(s.wake)
			s.wake = nil
		}
		s.mu.Unlock()
	}
}

// wait waits until slot col is given back, if it is lent.
func (l *Local[T]) wait(col int) {
	s := &l.slots[col]
	s.waiters.Add(1)
	defer s.waiters.Add(-1)
	// Either the borrower sees waiters, or we see that the slot is back. Pairs
	// with unlock, where Release is a full barrier if there is no Fence.
	if asm.Membarrier() == nil {
		asm.Fence()
	}
	s.mu.Lock()
	if s.wake == nil {
		s.wake = make(chan struct{})
	}
	wake := s.wake
	s.mu.Unlock()
	if l.locks.Load(col, 0) != 0 {
		<-wake
	}
}
