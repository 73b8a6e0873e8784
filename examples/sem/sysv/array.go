package sysv

import (
	"slices"
	"sync/atomic"
	"time"
)

// An array is what an ID names. What is guarded is so by the lock of its object in the Registry.
type array struct {
	key    Key
	limits *Limits
	perm   atomic.Pointer[Perm] // what it points to is not changed; stored with the lock
	sems   []semaphore          // the slice is not changed; what is in it is guarded

	_ [cacheLine]byte // what is written with the lock is not to take the fields above from lookups

	freed   bool             // set by free
	pending []*waiter        // who sleeps, in the order of their coming; guarded
	undos   map[*Owner][]int // what is to be added when an Owner exits, by semaphore; guarded
	otime   time.Time        // of the last Op; guarded
	cycles  uint64           // when otime was set, by asm.Cycles; guarded
	ctime   time.Time        // of the last change by others; guarded
}

// cacheLine is the unit in which processors share memory. Some fetch two lines at once.
const cacheLine = 128

type semaphore struct {
	value int
	pid   int // of who did the last operation
}

func newArray(t *Table, key Key, n int, o *Owner, flags Flags) *array {
	a := &array{key: key, limits: &t.limits, sems: make([]semaphore, n), ctime: time.Now()}
	a.perm.Store(&Perm{o.who.UID, o.who.GID, o.who.UID, o.who.GID, uint32(flags) & 0o777})
	return a
}

// free is called when nobody can have a any more. Whoever has finds that out, in allowed or in lock.
func (a *array) free() {
	if a.freed {
		panic("sysv: an array was freed twice")
	}
	a.freed = true
	a.perm.Store(nil)
}

// perform does all of ops, for o, or none. It returns -1 if it did them; or, of the operation that
// the others have to wait for, the number. The error is ERANGE, EINVAL for an Undo of an Owner that has exited,
// or EAGAIN if that operation is not to be waited for. The array is locked.
func (a *array) perform(ops []Op, o *Owner) (blocked int, err error) {
	var undo []int
	i := 0
	for ; i < len(ops); i++ {
		op := &ops[i]
		s := &a.sems[op.Num]
		value := s.value + op.Delta
		switch {
		case op.Delta > a.limits.Value-s.value:
			err = ERANGE
		case op.Delta == 0 && value != 0 || value < 0:
			if op.Flags&NoWait != 0 {
				err = EAGAIN
			}
		case op.Flags&Undo != 0:
			if undo == nil {
				if o.exited.Load() { // pairs with Exit
					err = EINVAL // the undos of this array are, or will be, done without this one
					break
				}
				undo = a.undoOf(o)
			}
			adjust := undo[op.Num] - op.Delta
			if adjust < -a.limits.Value-1 || adjust > a.limits.Value {
				err = ERANGE
				break
			}
			undo[op.Num] = adjust
			s.value = value
			continue
		default:
			s.value = value
			continue
		}
		// Back to where it was.
		for k := i - 1; k >= 0 && mutant != mutantPartial; k-- {
			op := &ops[k]
			a.sems[op.Num].value -= op.Delta
			if op.Flags&Undo != 0 {
				undo[op.Num] += op.Delta
			}
		}
		return i, err
	}
	for i := range ops {
		a.sems[ops[i].Num].pid = o.who.PID
	}
	return -1, nil
}

// stamp sets otime, to a millisecond or so: to look at the clock each time would take longer than the
// operation. The array is locked.
func (a *array) stamp(cycles uint64) {
	if cycles-a.cycles > 1<<20 {
		a.cycles, a.otime = cycles, time.Now()
	}
}

// undoOf returns what is to be added to the semaphores when o exits. The array is locked.
func (a *array) undoOf(o *Owner) []int {
	undo := a.undos[o]
	if undo == nil {
		if a.undos == nil {
			a.undos = make(map[*Owner][]int)
		}
		undo = make([]int, len(a.sems))
		a.undos[o] = undo
	}
	return undo
}

// settle does what has been waiting for values as they now are, first come, first served, and returns
// who is to be woken. The array is locked.
func (a *array) settle() (woken wakeList) {
	for i := 0; i < len(a.pending); {
		w := a.pending[i]
		blocked, err := a.perform(w.ops, w.owner)
		if blocked >= 0 && err == nil {
			w.blocked = blocked
			i++
			continue
		}
		a.pending = slices.Delete(a.pending, i, i+1)
		woken.add(w, err)
		if err == nil {
			i = 0 // what others wait for may be there now
		}
	}
	return woken
}

// waiting returns how many wait for semaphore num to become 0, or to become more. The array is locked.
func (a *array) waiting(num int, zero bool) (n int) {
	for _, w := range a.pending {
		if op := w.ops[w.blocked]; op.Num == num && (op.Delta == 0) == zero {
			n++
		}
	}
	return n
}

// A waiter is a Thread in Op. It is guarded by the array's lock while it is pending.
type waiter struct {
	owner   *Owner
	ops     []Op
	blocked int        // the number of the operation that the others wait for
	done    chan error // of capacity 1: what Op returns, when it is no longer pending

	// In a wakeList.
	err  error
	next *waiter
}

// A wakeList has waiters that are no longer pending, and are to be woken when the lock is gone.
type wakeList struct{ first, last *waiter }

func (l *wakeList) add(w *waiter, err error) {
	w.err, w.next = err, nil
	if l.last == nil {
		l.first = w
	} else {
		l.last.next = w
	}
	l.last = w
}

func (l wakeList) wake() {
	for w := l.first; w != nil; {
		next := w.next
		w.done <- w.err // w is its Thread's from here on
		w = next
	}
}
