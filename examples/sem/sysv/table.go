package sysv

import (
	"errors"
	"sync"

	"github.com/quiesce-go/quiesce/idr"
	"github.com/quiesce-go/quiesce/rcu"
)

// An ID names an array of a [Table]. It has a sequence number in it: after the array was removed it
// never names another. 0 is none.
type ID idr.Handle

// A Key is a name for an array that its users have agreed on.
type Key int32

// Private is the Key of arrays that are not found by a key.
const Private Key = 0

// Flags of Get are permissions, in the low nine bits, and what follows.
type Flags uint32

const (
	Create    Flags = 1 << 9  // IPC_CREAT: make an array if there is none
	Exclusive Flags = 1 << 10 // IPC_EXCL: with Create, it is an error if there is one
)

// Limits are what Linux has in its sysctl kernel.sem, and constants.
type Limits struct {
	Arrays     int // SEMMNI: arrays
	Semaphores int // SEMMNS: semaphores in all arrays
	PerArray   int // SEMMSL: semaphores in an array
	Ops        int // SEMOPM: operations in one call of Op
	Value      int // SEMVMX: the highest value, and the most that an undo can be
}

// DefaultLimits are those of Linux.
var DefaultLimits = Limits{Arrays: 32000, Semaphores: 1024000000, PerArray: 32000, Ops: 500, Value: 32767}

// Security is asked, after permissions were looked at, whether somebody may read or alter an array.
// What it returns is the error of the call. It is called by many goroutines at once, and in read
// sections or, with [NewLocked], with the array locked, so it must not make calls of this package.
type Security func(who Credentials, p Perm, alter bool) error

// A Table has arrays of semaphores. Make one with [New] or [NewLocked]. It may be used from any number
// of goroutines, through the [Thread] of each, and must not be copied.
type Table struct {
	d        *rcu.Domain
	arrays   *idr.Registry[array]
	limits   Limits
	security Security
	early    bool // the twin: lock an array when it is found

	mu   sync.Mutex // taken before the lock of an array
	keys map[Key]ID // of the arrays that have a key; guarded by mu
	used int        // semaphores in all arrays; guarded by mu
}

// New returns a Table whose arrays are found in read sections of d. Many Tables may share a Domain. d
// must not be closed as long as the Table is used. security may be nil.
func New(d *rcu.Domain, limits Limits, security Security) *Table {
	t := &Table{d: d, limits: limits, security: security, keys: make(map[Key]ID)}
	t.arrays = idr.NewRegistry(d, (*array).free)
	return t
}

// NewLocked returns a Table that works as Linux did before: an array is locked when it is found, and is
// so while all else is looked at.
func NewLocked(d *rcu.Domain, limits Limits, security Security) *Table {
	t := New(d, limits, security)
	t.early = true
	return t
}

// Get returns the id of the array with a key. If there is none and flags have Create, or if key is
// Private, it makes one of n semaphores with the value 0, whose permissions are the low bits of flags.
// Of an array that is there, n may be any number that it has, and the permissions are those that are
// wanted.
//
// The errors are EEXIST if there is an array and flags have Create and Exclusive; ENOENT if there is
// none and flags have no Create; EACCES for permissions that are not given; EINVAL if n is negative,
// or 0 for a new array, or more than an array has or can have; and ENOSPC if there are too many arrays or
// semaphores.
func (th *Thread) Get(key Key, n int, flags Flags) (ID, error) {
	t := th.o.t
	if n < 0 || n > t.limits.PerArray {
		return 0, EINVAL
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if id, ok := t.keys[key]; ok && key != Private {
		if flags&Create != 0 && flags&Exclusive != 0 {
			return 0, EEXIST
		}
		return id, th.mayGet(id, n, flags)
	}
	switch {
	case key != Private && flags&Create == 0:
		return 0, ENOENT
	case n == 0:
		return 0, EINVAL
	case t.arrays.Len() >= t.limits.Arrays, n > t.limits.Semaphores-t.used:
		return 0, ENOSPC
	}
	h, err := t.arrays.Add(newArray(t, key, n, th.o, flags))
	if err != nil {
		return 0, ENOSPC
	}
	t.used += n
	if key != Private {
		t.keys[key] = ID(h)
	}
	return ID(h), nil
}

// mayGet says whether an array that is there is one that Get may return.
func (th *Thread) mayGet(id ID, n int, flags Flags) error {
	v, err := th.visit(id)
	if err != nil {
		return err // not while t.mu is held
	}
	defer v.leave()
	if n > len(v.a.sems) {
		return EINVAL
	}
	wanted := uint32(flags>>6|flags>>3|flags) & 7
	return v.allowed(wanted)
}

// Remove removes an array. Who sleeps in it, or is about to use it, gets EIDRM. Beside Op it is
// IPC_RMID of semctl. The errors are EINVAL, EIDRM, and EPERM for others than its owner and creator.
func (th *Thread) Remove(id ID) error {
	woken, err := th.remove(id)
	woken.wake()
	return err
}

func (th *Thread) remove(id ID) (woken wakeList, err error) {
	t := th.o.t
	t.mu.Lock()
	defer t.mu.Unlock()
	v, err := th.visit(id)
	if err != nil {
		return woken, err
	}
	defer v.leave()
	if err := v.own(); err != nil {
		return woken, err
	}
	if err := v.lock(); err != nil {
		return woken, err
	}
	// Who gets the lock next is told that the array was removed. Those who sleep have to be told.
	if err := t.arrays.Remove(idr.Handle(id)); err != nil {
		panic(err) // The array is locked, and only here are arrays removed.
	}
	for _, w := range v.a.pending {
		woken.add(w, EIDRM)
	}
	v.a.pending = nil
	if v.a.key != Private {
		delete(t.keys, v.a.key)
	}
	t.used -= len(v.a.sems)
	return woken, nil
}

// Len returns the number of arrays.
func (t *Table) Len() int { return t.arrays.Len() }

// errno is the error of this package for one of idr.
func errno(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, idr.ErrRemoved):
		return EIDRM
	}
	return EINVAL
}
