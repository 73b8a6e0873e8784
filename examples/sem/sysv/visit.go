package sysv

import "github.com/quiesce-go/quiesce/idr"

// Credentials say who somebody is. UID 0 may do everything.
type Credentials struct {
	PID, UID, GID int
}

// Perm says whose an array is, and what others may do with it: as of files, of the nine bits of Mode
// those for reading and writing count, where to write is to alter.
type Perm struct {
	UID, GID   int // the owner
	CUID, CGID int // the creator
	Mode       uint32
}

const (
	mayRead  = 4
	mayAlter = 2
)

// A visit is what a call does with an array, in this order:
//
//  1. enter a read section, and obtain the array: an id that is stale, or never was one, ends here;
//  2. look at all that can be looked at without the lock: limits, permissions, what Security says;
//  3. lock the array, and learn whether it was removed meanwhile;
//  4. operate;
//  5. unlock, end the section;
//  6. wake who sleeps.
//
// That is what the kernel's patch made of it. Before, and in a Table by NewLocked, the lock is taken
// in the first step. Nothing else differs.
//
// A visit that was begun without an error is to be left, whatever comes then: by a defer, since the
// patch itself, as it was posted, had a way out of semctl that did not.
type visit struct {
	th     *Thread
	o      *idr.Object[array]
	a      *array
	locked bool
}

// visit begins a visit to an array. The error is EINVAL or EIDRM.
func (th *Thread) visit(id ID) (visit, error) {
	th.reader.Lock()
	o, err := th.o.t.arrays.Obtain(idr.Handle(id))
	return th.begin(o, err)
}

// visitAt is visit by index.
func (th *Thread) visitAt(i int) (visit, error) {
	th.reader.Lock()
	o, err := th.o.t.arrays.At(i)
	return th.begin(o, err)
}

func (th *Thread) begin(o *idr.Object[array], err error) (visit, error) {
	if err != nil {
		th.reader.Unlock()
		return visit{}, errno(err)
	}
	v := visit{th: th, o: o, a: o.Value()}
	if th.o.t.early {
		if err := v.lock(); err != nil {
			th.reader.Unlock()
			return visit{}, err
		}
	}
	return v, nil
}

// lock locks the array, if it is not locked. The error is EIDRM.
func (v *visit) lock() error {
	if v.locked {
		return nil
	}
	if err := v.o.Lock(); err != nil {
		return errno(err)
	}
	v.locked = true
	if v.a.freed {
		panic(freedInUse)
	}
	return nil
}

const freedInUse = "sysv: an array was freed while it was visited"

// permission returns whose the array is, and what others may do with it. What it points to does not
// change, so it is of one moment.
func (a *array) permission() *Perm {
	p := a.perm.Load() // pairs with the Stores in newArray, SetPerm and free
	if p == nil {
		panic(freedInUse)
	}
	return p
}

// leave ends the visit.
func (v *visit) leave() {
	if v.locked {
		v.o.Unlock()
	}
	v.th.reader.Unlock()
}

// allowed says whether the visitor may do what is wanted: mayRead, mayAlter, or both. The error is
// EACCES, or that of Security.
func (v *visit) allowed(wanted uint32) error {
	who, p := &v.th.o.who, v.a.permission()
	mode := p.Mode
	switch {
	case who.UID == 0:
		mode = 7
	case who.UID == p.UID || who.UID == p.CUID:
		mode >>= 6
	case who.GID == p.GID || who.GID == p.CGID:
		mode >>= 3
	}
	if wanted&^mode != 0 {
		return EACCES
	}
	if s := v.th.o.t.security; s != nil {
		return s(*who, *p, wanted&mayAlter != 0)
	}
	return nil
}

// own says whether the visitor may remove the array, or give it away. The error is EPERM.
func (v *visit) own() error {
	who, p := &v.th.o.who, v.a.permission()
	if who.UID != 0 && who.UID != p.UID && who.UID != p.CUID {
		return EPERM
	}
	return nil
}
