package sysv

import "time"

// The commands of semctl. Each returns EINVAL for an id that there never was and EIDRM for an array
// that was removed; EINVAL for a number that no semaphore has; and EACCES if it is not allowed to
// read, or to alter, what it reads or alters. [Thread.Remove] is the other one.

// A Stat is what is known of an array.
type Stat struct {
	Perm       Perm
	Key        Key
	Semaphores int
	OpTime     time.Time // of the last Op, or zero
	ChangeTime time.Time // of the creation, or the last SetAll, SetVal or SetPerm
}

// Stat is IPC_STAT: it returns what is known of an array.
func (th *Thread) Stat(id ID) (Stat, error) {
	v, err := th.visit(id)
	if err != nil {
		return Stat{}, err
	}
	return v.stat()
}

// StatAt is SEM_STAT: Stat by an index, and the id as well. Those who want to know of all arrays ask for
// 0, 1 and so on. The error is EINVAL if there is none with that index.
func (th *Thread) StatAt(index int) (ID, Stat, error) {
	v, err := th.visitAt(index)
	if err != nil {
		return 0, Stat{}, err
	}
	id := ID(v.o.Handle())
	s, err := v.stat()
	return id, s, err
}

// stat ends the visit.
func (v *visit) stat() (Stat, error) {
	defer v.leave()
	if err := v.allowed(mayRead); err != nil {
		if mutant == mutantOpen {
			v.th.reader.Lock()
		}
		return Stat{}, err
	}
	if err := v.lock(); err != nil {
		return Stat{}, err
	}
	a := v.a
	return Stat{*a.permission(), a.key, len(a.sems), a.otime, a.ctime}, nil
}

// look has fn read semaphore num of an array, which is locked.
func (th *Thread) look(id ID, num int, fn func(a *array, s *semaphore) int) (int, error) {
	v, err := th.visit(id)
	if err != nil {
		return 0, err
	}
	defer v.leave()
	if num < 0 || num >= len(v.a.sems) {
		return 0, EINVAL
	}
	if err := v.allowed(mayRead); err != nil {
		return 0, err
	}
	if err := v.lock(); err != nil {
		return 0, err
	}
	return fn(v.a, &v.a.sems[num]), nil
}

// GetVal is GETVAL: the value of semaphore num.
func (th *Thread) GetVal(id ID, num int) (int, error) {
	return th.look(id, num, func(_ *array, s *semaphore) int { return s.value })
}

// GetPID is GETPID: the PID of who did the last operation on semaphore num, or set it.
func (th *Thread) GetPID(id ID, num int) (int, error) {
	return th.look(id, num, func(_ *array, s *semaphore) int { return s.pid })
}

// GetNCnt is GETNCNT: how many sleep until semaphore num becomes more.
func (th *Thread) GetNCnt(id ID, num int) (int, error) {
	return th.look(id, num, func(a *array, _ *semaphore) int { return a.waiting(num, false) })
}

// GetZCnt is GETZCNT: how many sleep until semaphore num becomes 0.
func (th *Thread) GetZCnt(id ID, num int) (int, error) {
	return th.look(id, num, func(a *array, _ *semaphore) int { return a.waiting(num, true) })
}

// GetAll is GETALL: the values of all semaphores, as they are at one moment.
func (th *Thread) GetAll(id ID) ([]int, error) {
	v, err := th.visit(id)
	if err != nil {
		return nil, err
	}
	defer v.leave()
	if err := v.allowed(mayRead); err != nil {
		return nil, err
	}
	values := make([]int, len(v.a.sems)) // before the lock
	if err := v.lock(); err != nil {
		return nil, err
	}
	for i := range values {
		values[i] = v.a.sems[i].value
	}
	return values, nil
}

// SetAll is SETALL: it sets the values of all semaphores, drops all that is to be undone, and serves
// those who sleep. The errors are also EINVAL if there are more or fewer values than semaphores, and
// ERANGE if one is out of range.
func (th *Thread) SetAll(id ID, values []int) error {
	woken, err := th.set(id, 0, values, true)
	woken.wake()
	return err
}

// SetVal is SETVAL: SetAll for one semaphore.
func (th *Thread) SetVal(id ID, num, value int) error {
	woken, err := th.set(id, num, []int{value}, false)
	woken.wake()
	return err
}

// set sets the values of semaphores from num on, of all if all is set.
func (th *Thread) set(id ID, num int, values []int, all bool) (woken wakeList, err error) {
	v, err := th.visit(id)
	if err != nil {
		return woken, err
	}
	defer v.leave()
	if n := len(v.a.sems); all && len(values) != n || num < 0 || num >= n {
		return woken, EINVAL
	}
	for _, value := range values {
		if value < 0 || value > v.a.limits.Value {
			return woken, ERANGE
		}
	}
	if err := v.allowed(mayAlter); err != nil {
		return woken, err
	}
	if err := v.lock(); err != nil {
		return woken, err
	}
	for i, value := range values {
		v.a.sems[num+i] = semaphore{value, th.o.who.PID}
		for _, undo := range v.a.undos {
			undo[num+i] = 0
		}
	}
	v.a.ctime = time.Now()
	return v.a.settle(), nil
}

// SetPerm is IPC_SET: it gives the array another owner, and other permissions. The error is also EPERM,
// for others than its owner and creator.
func (th *Thread) SetPerm(id ID, uid, gid int, mode uint32) error {
	v, err := th.visit(id)
	if err != nil {
		return err
	}
	defer v.leave()
	if err := v.own(); err != nil {
		return err
	}
	if err := v.lock(); err != nil {
		return err
	}
	p := *v.a.permission()
	p.UID, p.GID, p.Mode = uid, gid, mode&0o777
	v.a.perm.Store(&p) // pairs with the Load in permission
	v.a.ctime = time.Now()
	return nil
}
