package idr

import (
	"math/bits"
	"sync/atomic"
)

// The tree that all ids of an IDR live in, and the directory beside it.
//
// Nodes have 64 slots. A leaf's slots hold the pointers of 64 consecutive ids, an inner node's
// slots other nodes. Paths are compressed: an inner node has two kids at least, and a node says
// itself which ids it is for, so a lone id costs one leaf wherever it is. The directory is an
// array of all leaves from id 0 up to some size: the shortcut by which dense ids are found in
// three loads. It points to the same leaves, so there is one place where an id's pointer is.
//
// Writers hold core.mu. Readers hold nothing, and may be in a node or in a directory that is no
// longer linked. What makes that right:
//
//  1. An id's pointer is in one slot of one leaf, and a leaf is linked, in the tree and in the
//     directory, before the first pointer is put into it and until the last one is taken out. So
//     storing to the slot is the moment at which a change happens, whichever way readers come.
//  2. A leaf is unlinked only when its slots are nil, and is never written again, nor used for
//     other ids. A reader that is still in it finds nothing; and there was nothing when the leaf
//     was unlinked, which was after the reader had come.
//  3. An inner node is unlinked only when one kid is left, and is never written again. Through
//     it, readers still reach that kid. For other ids they find nothing; and there was nothing
//     when the node was unlinked, which was after they had come.
//  4. A directory that has been replaced is never written again. When it was replaced it was
//     complete, so rule 2 covers a reader that is still in it.
//  5. From each node to the next a reader goes down, so it takes at most eleven steps, whatever
//     writers do.
//
// An id is taken, or free. A taken id holds a pointer, or is reserved (its slot is nil), or is
// held: it belongs to a call that is not over (AllocFunc, RemoveRetire) and to nobody else.
//
// A set bit in full says that there is no free id below that slot. In a leaf that is the bitmap
// of the ids that are taken, and of core.hole; in an inner node only a kid that is for all ids of its slot can set
// it. So the lowest free id is found in one way up and one down: where there is no node, and
// where a bit is clear, there is a free id.

const (
	fanBits = 6
	fan     = 1 << fanBits
	allFull = 1<<fan - 1
)

// An obj is what a slot points to, of a type that only the user of the slot knows: in a leaf the
// IDR's T, in an inner node a node.
type obj struct{}

// Slots are written under core.mu. They are apart from their node, so that they are 512 bytes: of
// eight cache lines, with nothing but what readers want, and for Go's allocator the largest object
// with pointers that needs no header.
type slots [fan]atomic.Pointer[obj]

// A node is for the ids that differ from base in the low shift+6 bits only.
type node struct {
	// Set before the node is linked, and never changed.
	*slots
	base  uintptr // the first id
	shift uint    // of an id to have a slot's number in the low six bits; 0 in a leaf

	// Guarded by core.mu.
	parent *node  // nil in the root
	full   uint64 // no free id below slot i; in a leaf: id base+i is taken
	held   uint64 // in a leaf: id base+i is held; a subset of full
}

// none stands in the directory for the slots of a leaf that does not exist, so that looking an id
// up needs no check for nil. Nothing is ever stored to it.
var none slots

// slot is the number of the slot that id is in or below. It is fan or more if id is not one of
// n's.
func (n *node) slot(id uintptr) uintptr { return (id ^ n.base) >> n.shift }

// fills reports whether n is for all the ids of its slot in p.
func (n *node) fills(p *node) bool { return n.shift+fanBits == p.shift }

// lookup is find for an id that may be anywhere. Inlined, it would take registers from find.
//
//go:noinline
func lookup(c *core, id uintptr) *obj {
	// Pairs with the Stores in replaceLocked and unlinkLocked: a node's fields and slots are as
	// they were when it was linked, or newer.
	n := c.root.Load()
	for n != nil {
		i := n.slot(id)
		if i >= fan {
			return nil
		}
		// Pairs with the same, and in a leaf with put.
		p := n.at(i).Load()
		if n.shift == 0 {
			return p
		}
		n = asNode(p)
	}
	return nil
}

// next returns the first leaf from n down that has ids of id or above, or nil. It is for readers
// and writers. Leaves that are linked all the time it runs are not missed, by rule 3.
func (n *node) next(id uintptr) *node {
	if n == nil || n.base+fan<<n.shift-1 < id {
		return nil
	}
	if n.shift == 0 {
		return n
	}
	var i uintptr
	if id > n.base {
		i = n.slot(id)
	}
	for ; i < fan; i++ {
		// Pairs with the Stores in replaceLocked and unlinkLocked.
		if leaf := asNode(n.at(i).Load()).next(id); leaf != nil {
			return leaf
		}
	}
	return nil
}

// free returns the lowest free id of id or above, or one above hi if there is none that is not,
// and the leaf for it, if there is one. It begins in n, where id is. core.mu is held.
func (n *node) free(id, hi uintptr) (uintptr, *node) {
	for n != nil && id <= hi {
		i := n.slot(id)
		if i >= fan {
			return id, nil // no node is for id
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
		n = asNode(n.at(n.slot(id)).Load())
	}
	return id, n
}

// filled sets the bits above n, which has become full. core.mu is held.
func (n *node) filled() {
	for p := n.parent; p != nil && n.fills(p); n, p = p, p.parent {
		p.full |= 1 << p.slot(n.base)
		if p.full != allFull {
			break
		}
	}
}

// opened clears the bits above n, which was full and is no longer. core.mu is held.
func (n *node) opened() {
	for p := n.parent; p != nil && n.fills(p); n, p = p, p.parent {
		if mutant == mutantNoOpen {
			return
		}
		was := p.full
		p.full &^= 1 << p.slot(n.base)
		if was != allFull {
			break
		}
	}
}

// leafLocked returns the leaf for id, or nil. c.mu is held.
func (c *core) leafLocked(id uintptr) *node {
	if id/fan < uintptr(len(c.leaves)) {
		return c.leaves[id/fan]
	}
	return c.farLeafLocked(id)
}

// farLeafLocked is leafLocked for an id that may be anywhere. c.mu is held.
//
//go:noinline
func (c *core) farLeafLocked(id uintptr) *node {
	n := c.root.Load()
	for n != nil {
		i := n.slot(id)
		if i >= fan {
			return nil
		}
		if n.shift == 0 {
			break
		}
		n = asNode(n.at(i).Load())
	}
	return n
}

// growLocked makes the leaf for id, or returns it if there is one. c.mu is held.
func (c *core) growLocked(id uintptr) *node {
	if n := c.leafLocked(id); n != nil {
		return n
	}
	leaf := &node{slots: new(slots), base: id &^ (fan - 1)}
	if n := len(mutantSlots); mutant == mutantReuseSlots && n > 0 {
		leaf.slots, mutantSlots = mutantSlots[n-1], mutantSlots[:n-1]
	}
	var p *node // to be leaf's parent
	n := c.root.Load()
	for n != nil && n.slot(id) < fan {
		p, n = n, asNode(n.at(n.slot(id)).Load())
	}
	if n == nil {
		c.replaceLocked(p, leaf)
	} else {
		// An inner node for both, as low as can be, in the place of n.
		shift := uint(bits.Len(uint(id^n.base))-1) / fanBits * fanBits
		in := &node{slots: new(slots), base: id &^ (fan<<shift - 1), shift: shift}
		in.at(in.slot(n.base)).Store(asObj(n))
		if n.full == allFull && n.fills(in) {
			in.full = 1 << in.slot(n.base)
		}
		in.at(in.slot(id)).Store(asObj(leaf))
		n.parent, leaf.parent = in, in
		c.replaceLocked(p, in)
		c.ninner++
	}
	c.nleaves++
	c.enterLocked(leaf)
	return leaf
}

// replaceLocked links n below p in the place of what there is, or as the root. c.mu is held.
func (c *core) replaceLocked(p, n *node) {
	n.parent = p
	// Both pair with the Loads in lookup and next: n is complete.
	if p == nil {
		c.root.Store(n)
	} else {
		p.at(p.slot(n.base)).Store(asObj(n))
	}
}

// unlinkLocked takes a leaf without ids out of the tree and the directory. c.mu is held.
func (c *core) unlinkLocked(leaf *node) {
	c.nleaves--
	if mutant == mutantReuseSlots {
		mutantSlots = append(mutantSlots, leaf.slots)
	}
	if i := leaf.base / fan; i < uintptr(len(c.leaves)) {
		c.leaves[i] = nil
		c.entries[i].Store(&none) // pairs with entry in find
	}
	p := leaf.parent
	// Both pair with the Loads in lookup and next, and order nothing for who sees them but that
	// the ids were removed before.
	if p == nil {
		c.root.Store(nil)
		return
	}
	p.at(p.slot(leaf.base)).Store(nil)
	var last *node
	for i := range p.slots {
		if n := asNode(p.slots[i].Load()); n != nil {
			if last != nil {
				return
			}
			last = n
		}
	}
	if mutant == mutantClearInner {
		clear(p.slots[:])
	}
	// p goes, and is left as it is for the readers in it: rule 3.
	c.replaceLocked(p.parent, last)
	c.ninner--
}

// enterLocked puts a new leaf into the directory, which grows if that is worth it: if one in
// four of its places would be used, so that it never takes more than 64 bytes a leaf, whatever
// the ids are. c.mu is held.
func (c *core) enterLocked(leaf *node) {
	i := leaf.base / fan
	if i < uintptr(len(c.leaves)) {
		c.leaves[i] = leaf
		// Pairs with entry in find.
		c.entries[i].Store(leaf.slots)
		return
	}
	size := uintptr(1) << bits.Len(uint(i))
	if size > 4*c.nleaves {
		return
	}
	leaves := make([]*node, size)
	entries := make([]atomic.Pointer[slots], size)
	n := copy(leaves, c.leaves)
	copy(entries, c.entries)
	for k := n; k < len(entries); k++ {
		entries[k].Store(&none)
	}
	root := c.root.Load()
	for l := root.next(uintptr(n) * fan); l != nil && l.base/fan < size; l = root.next(l.base + fan) {
		if mutant == mutantNoFill && l != leaf {
			continue
		}
		leaves[l.base/fan] = l
		entries[l.base/fan].Store(l.slots)
	}
	c.leaves, c.entries = leaves, entries
	// In this order: find loads the size before the directory, so the directory that it gets is
	// as large, or larger. Both pair with the Loads in find.
	c.dir.store(entries)
	c.size.Store(size * fan)
}
