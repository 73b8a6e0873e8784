package idr

import (
	"fmt"
	"math/bits"
)

func fail(format string, args ...any) {
	panic(fmt.Sprintf("idr: broken invariant: "+format, args...))
}

// checkLocked panics if something about the tree or the directory is not as tree.go and core.go
// say, or if checkLeaf, which is given each leaf, does. Builds with the tag invariants call it after
// each change; tests call it besides. c.mu is held.
func (c *core) checkLocked(checkLeaf func(leaf *node)) {
	taken, leaves, inner, below := 0, uintptr(0), uintptr(0), uintptr(0)
	var walk func(p, n *node)
	walk = func(p, n *node) {
		if n.parent != p {
			fail("parent of %#x/%d", n.base, n.shift)
		}
		if n.base&(fan<<n.shift-1) != 0 {
			fail("base of %#x/%d", n.base, n.shift)
		}
		if n.held&^n.full != 0 {
			fail("%#x/%d: held %#x is not within full %#x", n.base, n.shift, n.held, n.full)
		}
		if n.shift == 0 {
			leaves++
			taken += bits.OnesCount64(n.full)
			if n.base < c.low {
				below += uintptr(bits.OnesCount64(n.full))
				if n.base+fan > c.low {
					below -= uintptr(bits.OnesCount64(n.full >> (c.low % fan)))
				}
			}
			checkLeaf(n)
			if i := n.base / fan; i < uintptr(len(c.leaves)) && (c.leaves[i] != n || c.entries[i].Load() != n.slots) {
				fail("directory at %#x", n.base)
			}
			return
		}
		inner++
		if n.held != 0 {
			fail("held in inner node %#x/%d", n.base, n.shift)
		}
		kids := 0
		for i := range uintptr(fan) {
			kid := asNode(n.slots[i].Load())
			if kid != nil {
				kids++
				if n.slot(kid.base) != i || kid.shift >= n.shift {
					fail("place of %#x/%d below %#x/%d", kid.base, kid.shift, n.base, n.shift)
				}
				walk(n, kid)
			}
			full := kid != nil && kid.fills(n) && kid.full == allFull
			if full != (n.full>>i&1 != 0) {
				fail("full of %#x/%d, slot %d", n.base, n.shift, i)
			}
		}
		if kids < 2 {
			fail("%d kids below %#x/%d", kids, n.base, n.shift)
		}
	}
	if root := c.root.Load(); root != nil {
		walk(nil, root)
	}
	if leaf := c.holeLeaf; leaf != nil {
		taken--
		bit := uint64(1) << (c.hole % fan)
		if leaf != c.leafLocked(c.hole) || leaf.full&^leaf.held&bit == 0 || leaf.full == bit || leaf.at(c.hole).Load() != nil {
			fail("hole at %#x", c.hole)
		}
	}
	if taken != c.taken {
		fail("taken is %d, not %d", c.taken, taken)
	}
	if leaves != c.nleaves {
		fail("nleaves is %d, not %d", c.nleaves, leaves)
	}
	if inner != c.ninner {
		fail("ninner is %d, not %d", c.ninner, inner)
	}
	if below != c.low {
		fail("low is %#x, and %d below are free", c.low, c.low-below)
	}
	for i, n := range c.leaves {
		if n != nil {
			leaves--
		}
		if (n == nil) != (c.entries[i].Load() == &none) {
			fail("entry %d of the directory", i)
		}
	}
	if int(leaves) < 0 {
		fail("more leaves in the directory than in the tree")
	}
	if s := c.size.Load(); s != uintptr(len(c.leaves))*fan || len(c.leaves) != len(c.entries) {
		fail("size %#x, %d leaves, %d entries", s, len(c.leaves), len(c.entries))
	}
	for i := range none {
		if none[i].Load() != nil {
			fail("something was stored to none")
		}
	}
}

// checkEntries panics if the entries of an IDR's leaf are not as they should be.
func (c *core) checkEntries(leaf *node) {
	if leaf.full == 0 && leaf != c.idle {
		fail("empty leaf %#x", leaf.base)
	}
	for i := range uintptr(fan) {
		if leaf.slots[i].Load() != nil && (leaf.full&^leaf.held)>>i&1 == 0 {
			fail("pointer of %#x, which has none", leaf.base+i)
		}
	}
}

// checkLocked panics if something about a is not as ida.go says. a.c.mu is held.
func (a *IDA) checkLocked() {
	n := 0
	a.c.checkLocked(func(leaf *node) {
		empty := true
		for i := range uintptr(fan) {
			b := restore[chunk](leaf.slots[i].Load())
			full := leaf.full>>i&1 != 0
			if b == nil && full || b != nil && full != b.full() {
				fail("full of chunk %#x", leaf.base+i)
			}
			if b == nil {
				continue
			}
			empty = false
			if b.empty() && leaf.base+i+1 != a.idle {
				fail("empty chunk %#x", leaf.base+i)
			}
			n += b.count(0, chunkBits-1)
		}
		if empty || leaf.held != 0 {
			fail("leaf %#x: empty is %v, held %#x", leaf.base, empty, leaf.held)
		}
	})
	if n != a.n {
		fail("n is %d, not %d", a.n, n)
	}
	if a.low > 0 && a.countLocked(0, a.low-1) != a.low {
		fail("low is %#x, and some below are free", a.low)
	}
}
