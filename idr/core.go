package idr

import (
	"math/bits"
	"sync"
	"sync/atomic"
)

// A core is an IDR without its type: ids, and pointers for them. The zero core is ready. Ids are
// uintptr, so that a negative int is an id that nobody has.
type core struct {
	// What readers load.
	size atomic.Uintptr       // ids below have their leaf, or none, in dir; never shrinks
	dir  directory            // leaves, for them
	root atomic.Pointer[node] // the tree, or nil

	_ [cacheLine]byte // what writers write is not to take the line above from readers

	mu sync.Mutex // held to write anything in the core or in its nodes

	// Guarded by mu.
	leaves  []atomic.Pointer[node] // the directory
	nleaves uintptr                // leaves in the tree
	idle    *node                  // the leaf that was emptied last, still linked; or nil
	taken   int                    // ids that are not free
	low     uintptr                // all ids below are taken
	cursor  uintptr                // where the next cyclic allocation begins
}

// cacheLine is the unit in which processors share memory. Some fetch two lines at once, and some
// have lines of 128 bytes.
const cacheLine = 128

// freeLocked returns the lowest free id in [lo, hi], and whether there is one. c.mu is held.
func (c *core) freeLocked(lo, hi uintptr) (id uintptr, ok bool) {
	id = max(lo, c.low)
	n := c.leafLocked(id)
	for n != nil && id <= hi {
		i := n.slot(id)
		if i >= fan {
			break // no node is for id
		}
		free := ^n.full >> i
		if free == 0 {
			// Up, to the first node that goes on after n.
			id = n.base + fan<<n.shift
			for n = n.parent; n != nil && n.slot(id) >= fan; n = n.parent {
			}
			continue
		}
		if skip := uintptr(bits.TrailingZeros64(free)); skip > 0 {
			id = n.base + (i+skip)<<n.shift
		}
		if n.shift == 0 {
			break
		}
		n = asNode(n.slots[n.slot(id)].Load())
	}
	if lo <= c.low {
		c.low = id
	}
	return id, id <= hi
}

// takeLocked makes a free id taken and reserved. It returns the leaf and the bit of id in its
// bitmaps. c.mu is held.
func (c *core) takeLocked(id uintptr) (leaf *node, bit uint64) {
	leaf, bit = c.growLocked(id), 1<<(id%fan)
	leaf.full |= bit
	for n := leaf; n.full == allFull && n.parent != nil && n.fills(n.parent); n = n.parent {
		n.parent.full |= 1 << n.parent.slot(n.base)
	}
	c.taken++
	if id == c.low {
		c.low++
	}
	return leaf, bit
}

// releaseLocked makes an id free, whose slot is nil. c.mu is held.
func (c *core) releaseLocked(leaf *node, id uintptr) {
	bit, n := uint64(1)<<(id%fan), leaf
	for n.full == allFull {
		n.full &^= bit
		if n.parent == nil || !n.fills(n.parent) {
			break
		}
		bit, n = 1<<n.parent.slot(n.base), n.parent
	}
	n.full &^= bit
	leaf.held &^= 1 << (id % fan)
	c.taken--
	c.low = min(c.low, id)
	if leaf.full == 0 {
		// The last one to be emptied stays, so that one id that comes and goes does not make
		// a leaf each time; the one before goes, if it is still empty.
		if c.idle != nil && c.idle != leaf && c.idle.full == 0 {
			c.unlinkLocked(c.idle)
		}
		c.idle = leaf
	}
}

// entryLocked returns the leaf of id and its slot there if id is taken and not held. c.mu is held.
func (c *core) entryLocked(id uintptr) (leaf *node, slot *atomic.Pointer[obj]) {
	leaf = c.leafLocked(id)
	if leaf == nil || (leaf.full&^leaf.held)>>(id%fan)&1 == 0 {
		return nil, nil
	}
	return leaf, &leaf.slots[id%fan]
}

// The operations of IDR, with its arguments and results. Each Store to a slot is the moment at
// which the change happens, and pairs with entry in find and with the Load in lookup and in All.

func (c *core) alloc(v *obj, lo, hi uintptr) (uintptr, error) {
	c.mu.Lock()
	defer c.unlock()
	id, ok := c.freeLocked(lo, hi)
	if !ok {
		return 0, ErrFull
	}
	c.putLocked(id, v)
	return id, nil
}

func (c *core) allocCyclic(v *obj, lo, hi uintptr) (uintptr, error) {
	c.mu.Lock()
	defer c.unlock()
	from := c.cursor
	if from < lo || from > hi {
		from = lo
	}
	id, ok := c.freeLocked(from, hi)
	if !ok && from > lo {
		id, ok = c.freeLocked(lo, from-1)
	}
	if !ok {
		return 0, ErrFull
	}
	c.putLocked(id, v)
	c.cursor = id + 1
	return id, nil
}

func (c *core) insert(id uintptr, v *obj) error {
	c.mu.Lock()
	defer c.unlock()
	if leaf := c.leafLocked(id); leaf != nil && leaf.full>>(id%fan)&1 != 0 {
		return ErrExists
	}
	c.putLocked(id, v)
	return nil
}

// putLocked takes a free id for v. c.mu is held.
func (c *core) putLocked(id uintptr, v *obj) {
	leaf, _ := c.takeLocked(id)
	if v != nil {
		leaf.slots[id%fan].Store(v)
	}
}

func (c *core) replace(id uintptr, v *obj) (old *obj, err error) {
	c.mu.Lock()
	defer c.unlock()
	_, slot := c.entryLocked(id)
	if slot == nil {
		return nil, ErrNotFound
	}
	return slot.Swap(v), nil
}

func (c *core) compareAndSwap(id uintptr, old, new *obj) bool {
	c.mu.Lock()
	defer c.unlock()
	_, slot := c.entryLocked(id)
	return slot != nil && slot.CompareAndSwap(old, new)
}

func (c *core) remove(id uintptr) *obj {
	c.mu.Lock()
	defer c.unlock()
	leaf, slot := c.entryLocked(id)
	if slot == nil {
		return nil
	}
	v := slot.Load()
	if v != nil {
		slot.Store(nil)
	}
	c.releaseLocked(leaf, id)
	return v
}

// hold allocates an id and leaves it held.
func (c *core) hold(lo, hi uintptr) (uintptr, error) {
	c.mu.Lock()
	defer c.unlock()
	id, ok := c.freeLocked(lo, hi)
	if !ok {
		return 0, ErrFull
	}
	leaf, bit := c.takeLocked(id)
	leaf.held |= bit
	return id, nil
}

// withdraw takes the pointer of id away and leaves id held. It returns nil, and does nothing, if
// there is no pointer.
func (c *core) withdraw(id uintptr) *obj {
	c.mu.Lock()
	defer c.unlock()
	leaf, slot := c.entryLocked(id)
	if slot == nil {
		return nil
	}
	v := slot.Load()
	if v != nil {
		slot.Store(nil)
		leaf.held |= 1 << (id % fan)
	}
	return v
}

// settle ends the holding of id: with v as its pointer, or by making id free if v is nil.
func (c *core) settle(id uintptr, v *obj) {
	c.mu.Lock()
	defer c.unlock()
	leaf := c.leafLocked(id)
	if v == nil {
		c.releaseLocked(leaf, id)
		return
	}
	leaf.held &^= 1 << (id % fan)
	leaf.slots[id%fan].Store(v)
}

func (c *core) len() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.taken
}

// clear removes all ids but those that are held. It starts a new tree for them: the nodes of the
// old one are left as they are, without pointers, for the readers in them.
func (c *core) clear() {
	c.mu.Lock()
	defer c.unlock()
	var held []uintptr
	root := c.root.Load()
	for leaf := root.next(0); leaf != nil; leaf = root.next(leaf.base + fan) {
		for i := range uintptr(fan) {
			if leaf.full>>i&1 != 0 {
				leaf.slots[i].Store(nil)
			}
			if leaf.held>>i&1 != 0 {
				held = append(held, leaf.base+i)
			}
		}
	}
	for i := range c.leaves {
		c.leaves[i].Store(&none)
	}
	c.root.Store(nil)
	c.nleaves, c.idle, c.taken, c.low = 0, nil, 0, 0
	for _, id := range held {
		leaf, bit := c.takeLocked(id)
		leaf.held |= bit
	}
}

// unlock unlocks mu, after a look at the invariants in builds with the tag invariants.
func (c *core) unlock() {
	if invariants {
		c.checkLocked()
	}
	c.mu.Unlock()
}
