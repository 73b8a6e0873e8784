package idr

import (
	"runtime"
	"sync"
	"sync/atomic"
)

// A core is an IDR without its type: ids, and pointers for them. The zero core is ready. Ids are
// uintptr, so that a negative int is an id that nobody has.
type core struct {
	// What readers load.
	size atomic.Uintptr       // ids below have their leaf, or none, in dir; never shrinks
	dir  directory            // entries, for them
	root atomic.Pointer[node] // the tree, or nil

	_ [cacheLine]byte // what writers write is not to take the line above from readers

	mu sync.Mutex // held to write anything in the core or in its nodes

	// Guarded by mu.
	entries []atomic.Pointer[slots] // the directory: of each leaf the slots, or none
	leaves  []*node                 // of the same length: the leaf, or nil
	nleaves uintptr                 // leaves in the tree
	ninner  uintptr                 // other nodes in the tree
	idle    *node                   // the leaf that was emptied last, still linked; or nil
	taken   int                     // ids that are not free
	low     uintptr                 // all ids below are taken, but for the hole
	cursor  uintptr                 // where the next cyclic allocation begins

	// The hole is an id that was freed, and whose bit in full is still set. Most often it is the next
	// to be taken; then nothing has to be cleared, and set again, in its leaf and above. There is one
	// at most, and its leaf has another id too.
	hole     uintptr
	holeLeaf *node // nil if there is no hole
}

// cacheLine is the unit in which processors share memory. Some fetch two lines at once, and some
// have lines of 128 bytes.
const cacheLine = 128

// takeLocked takes the lowest free id in [lo, hi] for v, or reserves it if v is nil, and returns it
// and its leaf. If there is none it returns an id above hi, and has done nothing. c.mu is held.
func (c *core) takeLocked(lo, hi uintptr, v *obj) (id uintptr, leaf *node) {
	if c.holeLeaf != nil {
		c.openLocked()
	}
	id = max(lo, c.low)
	leaf = c.leafLocked(id)
	if leaf != nil && leaf.full>>(id%fan)&1 != 0 {
		id, leaf = leaf.free(id, hi)
	}
	if lo <= c.low {
		c.low = id
	}
	if id > hi {
		return id, nil
	}
	if leaf == nil {
		leaf = c.growLocked(id)
	}
	leaf.full |= 1 << (id % fan)
	if leaf.full == allFull {
		leaf.filled()
	}
	c.taken++
	if id == c.low {
		c.low++
	}
	put(leaf.at(id), v)
	return id, leaf
}

// hasLocked reports whether id is taken and not held, and in leaf, which is its leaf or nil. c.mu is
// held.
func (c *core) hasLocked(leaf *node, id uintptr) bool {
	return leaf != nil && (leaf.full&^leaf.held)>>(id%fan)&1 != 0 && (leaf != c.holeLeaf || id != c.hole)
}

// releaseLocked makes an id free that is not held, and whose slot is nil. c.mu is held.
func (c *core) releaseLocked(id uintptr, leaf *node) {
	c.taken--
	if c.holeLeaf != nil {
		c.openLocked()
	}
	c.hole, c.holeLeaf = id, leaf
	if leaf.full == 1<<(id%fan) {
		c.openLocked() // it has no other id
	}
}

// openLocked clears the bit of the hole: it is an id like others then. c.mu is held.
func (c *core) openLocked() {
	id, leaf := c.hole, c.holeLeaf
	c.holeLeaf = nil
	if leaf.full == allFull {
		leaf.opened()
	}
	leaf.full &^= 1 << (id % fan)
	c.low = min(c.low, id)
	if leaf.full == 0 {
		c.emptyLocked(leaf)
	}
}

// emptyLocked is told that a leaf has no ids any more. The last one to be emptied stays, so that
// one id that comes and goes does not make a leaf each time; the one before goes, if it is still
// empty. c.mu is held.
func (c *core) emptyLocked(leaf *node) {
	if c.idle != nil && c.idle != leaf && c.idle.full == 0 {
		c.unlinkLocked(c.idle)
	}
	c.idle = leaf
}

// fetch brings the slot of id into this CPU's caches before mu is locked, so that others do not wait
// for it too. What it loads does not matter. compareAndSwap does without: who has an old pointer has
// loaded it there.
func (c *core) fetch(id uintptr) { runtime.KeepAlive(find(c, id, lookup)) }

// The operations of IDR, with its arguments and results. Each put into a slot is the moment at
// which the change happens; it pairs with entry in find and with the Loads in lookup and From.

func (c *core) alloc(v *obj, lo, hi uintptr) (uintptr, error) {
	c.mu.Lock()
	// If all ids below the hole are taken, it is the lowest.
	id, leaf := c.hole, c.holeLeaf
	if leaf != nil && lo <= id && id <= hi && id < c.low {
		c.holeLeaf = nil
		c.taken++
		put(leaf.at(id), v)
	} else {
		id, _ = c.takeLocked(lo, hi, v)
	}
	c.unlock()
	if id > hi {
		return 0, ErrFull
	}
	return id, nil
}

func (c *core) allocCyclic(v *obj, lo, hi uintptr) (uintptr, error) {
	c.mu.Lock()
	defer c.unlock()
	from := c.cursor
	if from < lo || from > hi {
		from = lo
	}
	id, _ := c.takeLocked(from, hi, v)
	if id > hi && from > lo {
		hi = from - 1
		if mutant == mutantCursor {
			hi--
		}
		id, _ = c.takeLocked(lo, hi, v)
	}
	if id > hi {
		return 0, ErrFull
	}
	if mutant == mutantWrapError && id < c.cursor {
		return 0, ErrFull
	}
	c.cursor = id + 1
	return id, nil
}

// hold allocates an id and leaves it held.
func (c *core) hold(lo, hi uintptr) (uintptr, error) {
	c.mu.Lock()
	defer c.unlock()
	id, leaf := c.takeLocked(lo, hi, nil)
	if id > hi {
		return 0, ErrFull
	}
	if mutant != mutantNotHeld {
		leaf.held |= 1 << (id % fan)
	}
	return id, nil
}

func (c *core) insert(id uintptr, v *obj) error {
	if _, err := c.alloc(v, id, id); err != nil {
		return ErrExists
	}
	return nil
}

func (c *core) replace(id uintptr, v *obj) (old *obj, err error) {
	c.fetch(id)
	c.mu.Lock()
	defer c.unlock()
	leaf := c.leafLocked(id)
	if !c.hasLocked(leaf, id) {
		return nil, ErrNotFound
	}
	slot := leaf.at(id)
	old = slot.Load()
	put(slot, v)
	return old, nil
}

func (c *core) compareAndSwap(id uintptr, old, new *obj) bool {
	c.mu.Lock()
	defer c.unlock()
	leaf := c.leafLocked(id)
	if !c.hasLocked(leaf, id) || leaf.at(id).Load() != old {
		return false
	}
	if mutant == mutantRacySwap {
		c.mu.Unlock()
		runtime.Gosched()
		c.mu.Lock()
	}
	put(leaf.at(id), new)
	return true
}

func (c *core) remove(id uintptr) (v *obj) {
	c.fetch(id)
	c.mu.Lock()
	if leaf := c.leafLocked(id); c.hasLocked(leaf, id) || mutant == mutantFreeTwice && leaf != nil {
		v = find(c, id, lookup) // not through leaf, for which it would have to wait
		put(leaf.at(id), nil)
		c.releaseLocked(id, leaf)
	}
	c.unlock()
	return v
}

// withdraw takes the pointer of id away and leaves id held. It returns nil, and does nothing, if
// there is no pointer.
func (c *core) withdraw(id uintptr) *obj {
	c.fetch(id)
	c.mu.Lock()
	defer c.unlock()
	leaf := c.leafLocked(id)
	if !c.hasLocked(leaf, id) {
		return nil
	}
	slot := leaf.at(id)
	v := slot.Load()
	if v != nil {
		put(slot, nil)
		leaf.held |= 1 << (id % fan)
	}
	return v
}

// settle ends the holding of id: with v as its pointer, or by making id free if v is nil.
func (c *core) settle(id uintptr, v *obj) {
	c.mu.Lock()
	defer c.unlock()
	leaf := c.leafLocked(id)
	leaf.held &^= 1 << (id % fan)
	if v == nil {
		c.releaseLocked(id, leaf)
		return
	}
	put(leaf.at(id), v)
}

func (c *core) len() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.taken
}

// reset removes all ids but those that are held. It starts a new tree for them: the nodes of the
// old one are left as they are, without pointers, for the readers in them.
func (c *core) reset() {
	c.mu.Lock()
	defer c.unlock()
	var held []uintptr
	root := c.root.Load()
	for leaf := root.next(0); leaf != nil; leaf = root.next(leaf.base + fan) {
		for i := range uintptr(fan) {
			if leaf.full>>i&1 != 0 {
				put(leaf.at(i), nil)
			}
			if leaf.held>>i&1 != 0 {
				held = append(held, leaf.base+i)
			}
		}
	}
	c.forgetLocked()
	for _, id := range held {
		_, leaf := c.takeLocked(id, id, nil)
		leaf.held |= 1 << (id % fan)
	}
}

// forgetLocked starts again with no tree. The old one is left as it is. c.mu is held.
func (c *core) forgetLocked() {
	clear(c.leaves)
	for i := range c.entries {
		c.entries[i].Store(&none) // pairs with entry in find
	}
	c.root.Store(nil) // pairs with the Loads in lookup, From and Next
	c.nleaves, c.ninner, c.idle, c.taken, c.low, c.holeLeaf = 0, 0, nil, 0, 0, nil
}

// unlock unlocks mu. In builds with the tag invariants it looks at them first: each time as long as
// the tree is small, for that takes time.
func (c *core) unlock() {
	if invariants && (c.nleaves < 32 || c.taken%4096 == 0) {
		c.checkLocked(c.checkEntries)
	}
	c.mu.Unlock()
}
