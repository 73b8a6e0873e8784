package idr

// Why unsafe: looking an id up is to cost little more than indexing a slice, and has to fit into
// the compiler's inlining budget. Bounds are checked once, against core.size; the compiler would
// check them, and pointers for nil, at each step, and the checks for nil load from the leaf's
// first cache line, which is otherwise not needed. Measured with a million ids in random order:
// 1.9 times a slice with these checks, 1.5 without (and 1.4 as entry_amd64_unsafe.go has it).
//
// It relies on atomic.Pointer being one word, which is checked below at compile time. Tried with
// Go 1.26.

import (
	"sync/atomic"
	"unsafe"
)

const (
	word       = unsafe.Sizeof(uintptr(0))
	nodeBytes  = int(unsafe.Sizeof(node{}) + unsafe.Sizeof(slots{}))
	placeBytes = 2 * int(word) // in core.entries and core.leaves
)

var (
	_ [word - unsafe.Sizeof(atomic.Pointer[obj]{})]struct{}
	_ [unsafe.Sizeof(atomic.Pointer[obj]{}) - word]struct{}
)

// Find returns the object of id. It returns nil if id is free, reserved, held or negative.
//
// Find takes no lock, does not wait, allocates nothing and writes nothing. For dense ids it is
// three loads, each of which needs the one before, and is inlined; for others it goes down the
// tree, eleven nodes at most. An object that was removed may still be in use by who found it
// before; if that matters, find it in a read section and remove it with RemoveRetire.
func (x *IDR[T]) Find(id int) *T {
	return (*T)(unsafe.Pointer(find(&x.c, uintptr(id), lookup)))
}

// find returns the pointer of id, or nil. It is small enough to be inlined into IDR.Find and on
// into its callers. far is always lookup: a call of a parameter counts less in the inliner's
// budget than a direct call, and where find is inlined it becomes one.
func find(c *core, id uintptr, far func(*core, uintptr) *obj) *obj {
	// The Loads pair with the Stores in enterLocked: the directory has size/fan entries at
	// least. They are slots, or none, and not nil.
	if id < c.size.Load() {
		return (*obj)(entry(entry(c.dir.load(), id/fan), id%fan))
	}
	return far(c, id)
}

// A directory is the first entry of core.entries, as find wants it. It is an atomic.Pointer that
// costs the inliner less than one of a generic type.
type directory struct{ p unsafe.Pointer }

func (d *directory) load() unsafe.Pointer { return atomic.LoadPointer(&d.p) }

func (d *directory) store(entries []atomic.Pointer[slots]) {
	atomic.StorePointer(&d.p, unsafe.Pointer(unsafe.SliceData(entries)))
}

// at returns slot i%fan. To the same with an index the compiler adds a load of the first slot, to
// see whether s is nil, and that is often another cache line that is not there.
func (s *slots) at(i uintptr) *atomic.Pointer[obj] {
	return (*atomic.Pointer[obj])(unsafe.Add(unsafe.Pointer(s), i%fan*word))
}

// The conversions between an obj and what it is. Each pointer goes back to the type it came from.

func asObj(n *node) *obj       { return (*obj)(unsafe.Pointer(n)) }
func asNode(p *obj) *node      { return (*node)(unsafe.Pointer(p)) }
func erase[T any](v *T) *obj   { return (*obj)(unsafe.Pointer(v)) }
func restore[T any](p *obj) *T { return (*T)(unsafe.Pointer(p)) }
