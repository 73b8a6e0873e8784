package idr

import (
	"math"
	"math/bits"
	"sync/atomic"
)

// An IDA gives out ids, and has no objects for them: a bit says that an id is taken. The zero IDA
// is ready, and has no ids. An IDA must not be copied after its first use.
//
// All methods may be called from any goroutine. Contains and Next take no lock; methods that change
// something, and Len, take the IDA's mutex for a short time. Ids are from 0 to math.MaxInt, and are
// given out lowest first.
//
// A call that takes or frees an id synchronizes before a Contains or Next that sees what it did,
// and before the next call that changes something. A Contains that returns false because an id
// never was taken is ordered after nothing.
//
// A dense id takes 1.1 bits, a lone one, wherever it is, 700 bytes. Memory without ids is given
// back, but for the 1024 bits that were emptied last. It is what Linux's IDA is: a tree of bitmaps,
// here the tree of [IDR].
type IDA struct {
	// The ids of c are the numbers of chunks. One that is taken is full; one that is free may have
	// a chunk nevertheless, which has free bits.
	c core

	// Guarded by c.mu.
	n    int     // ids that are taken
	low  uintptr // all ids below are taken
	idle uintptr // one more than the number of the chunk that was emptied last; or 0
}

const chunkBits = 1024

// A chunk has a bit for each of 1024 ids. It is written under core.mu. A chunk without ids is in
// the tree only if it was emptied last; one that was taken out is never written again, so to a
// reader that is still in it what rule 2 of tree.go says of leaves applies.
type chunk [chunkBits / 64]atomic.Uint64

// word returns the word that id is in, and its bit there.
func (b *chunk) word(id uintptr) (word *atomic.Uint64, bit uint64) {
	return &b[id/64%uintptr(len(b))], 1 << (id % 64)
}

// next returns the number of the first bit from i on that is set, or with flip = allFull is clear;
// or chunkBits if there is none.
func (b *chunk) next(i uintptr, flip uint64) uintptr {
	for mask := uint64(allFull) << (i % 64); i < chunkBits; mask = allFull {
		if w := (b[i/64].Load() ^ flip) & mask; w != 0 {
			return i&^63 + uintptr(bits.TrailingZeros64(w))
		}
		i = i&^63 + 64
	}
	return chunkBits
}

// count returns how many of the bits from i to j, j included, are set.
func (b *chunk) count(i, j uintptr) (n int) {
	for k := i / 64; k <= j/64; k++ {
		w := b[k].Load()
		if k == i/64 {
			w &= allFull << (i % 64)
		}
		if k == j/64 {
			w &= allFull >> (63 - j%64)
		}
		n += bits.OnesCount64(w)
	}
	return n
}

func (b *chunk) empty() bool { return b.next(0, 0) == chunkBits }
func (b *chunk) full() bool  { return b.next(0, allFull) == chunkBits }

// Alloc takes the lowest free id. The error is [ErrFull] when no id is free. The cost is some
// steps up and down the tree, however full it is. Each 1024th id, about, allocates 128 bytes.
func (a *IDA) Alloc() (int, error) { return a.AllocRange(0, math.MaxInt) }

// AllocRange takes the lowest free id in [min, max], max included, as Alloc does. The error is
// [ErrFull] if there is none, and [ErrRange] if min is negative or above max.
func (a *IDA) AllocRange(min, max int) (int, error) {
	if min < 0 || max < min {
		return 0, ErrRange
	}
	a.c.mu.Lock()
	id := a.takeLocked(uintptr(min), uintptr(max))
	a.unlock()
	if id > uintptr(max) {
		return 0, ErrFull
	}
	return int(id), nil
}

// AllocN takes the n lowest free ids in [min, max], max included, and returns them in ascending
// order. It takes all, or none: nobody sees ids taken by a call that fails. To a Contains beside a
// call that succeeds it is as if they were taken one after the other.
//
// The error is [ErrFull] if fewer are free, and [ErrRange] if n is not positive, min is negative,
// or min is above max. The cost is O(n), or O(n + ids that are taken) in a range that is nearly
// full, and the IDA is locked meanwhile. AllocN allocates what it returns. It panics, and takes
// nothing, if n is more than a slice can have.
func (a *IDA) AllocN(n, min, max int) ([]int, error) {
	if n <= 0 || min < 0 || max < min {
		return nil, ErrRange
	}
	lo, hi := uintptr(min), uintptr(max)
	a.c.mu.Lock()
	defer a.unlock()
	room := hi - lo + 1
	if uintptr(n) > room {
		return nil, ErrFull
	}
	// The count is needed only if the ids that are taken may be in the way.
	if uintptr(n)+uintptr(a.n) > room && uintptr(n)+a.countLocked(lo, hi) > room && mutant != mutantPartial {
		return nil, ErrFull
	}
	ids := make([]int, n)
	for i := range ids {
		id := a.takeLocked(lo, hi)
		if id > hi { // only in the mutant
			return nil, ErrFull
		}
		ids[i], lo = int(id), id+1
	}
	return ids, nil
}

// Free makes id free. The error is [ErrNotFound] if it is free already, or negative; then nothing
// has changed.
func (a *IDA) Free(id int) error {
	a.c.mu.Lock()
	ok := a.releaseLocked(uintptr(id))
	a.unlock()
	if !ok {
		return ErrNotFound
	}
	return nil
}

// Contains reports whether id is taken. It takes no lock, does not wait, allocates nothing and
// writes nothing: for dense ids it is four loads, for others some more on the way down the tree.
func (a *IDA) Contains(id int) bool {
	b := restore[chunk](find(&a.c, uintptr(id)/chunkBits, lookup))
	if b == nil {
		return false
	}
	w, bit := b.word(uintptr(id))
	return w.Load()&bit != 0 // pairs with the Stores in takeLocked, releaseLocked and Clear
}

// Next returns the first id of id or above that is taken, and whether there is one. A negative id
// stands for 0. Next takes no lock. An id that is taken all the time that Next runs is never
// passed over.
func (a *IDA) Next(id int) (int, bool) {
	at := uintptr(max(id, 0))
	for k := at / chunkBits; ; {
		// Pairs with the Stores in replaceLocked, unlinkLocked and Clear.
		leaf := a.c.root.Load().next(k)
		if leaf == nil {
			return 0, false
		}
		for i := max(k, leaf.base) - leaf.base; i < fan; i++ {
			b := restore[chunk](leaf.at(i).Load()) // pairs with put
			if b == nil {
				continue
			}
			first := (leaf.base + i) * chunkBits
			// Pairs with the Stores in takeLocked, releaseLocked and Clear.
			if bit := b.next(max(at, first)-first, 0); bit < chunkBits {
				return int(first + bit), true
			}
		}
		k = leaf.base + fan
	}
}

// Len returns the number of ids that are taken. It is exact, and O(1).
func (a *IDA) Len() int {
	a.c.mu.Lock()
	defer a.c.mu.Unlock()
	return a.n
}

// Clear makes all ids free. To readers it is as if that were done for one after the other. It is
// O(n), and writers wait for it.
func (a *IDA) Clear() {
	a.c.mu.Lock()
	defer a.unlock()
	// Who is in a chunk, or still finds it, finds no ids there.
	for _, b := range a.chunksLocked(0) {
		for i := range b {
			b[i].Store(0) // pairs with the Loads in Contains and Next
		}
	}
	a.c.forgetLocked()
	a.n, a.low, a.idle = 0, 0, 0
}

// takeLocked takes the lowest free id in [lo, hi]. If there is none it returns an id above hi, and
// has done nothing. a.c.mu is held.
func (a *IDA) takeLocked(lo, hi uintptr) uintptr {
	id, leaf := a.searchLocked(max(lo, a.low), hi)
	if lo <= a.low {
		a.low = id
	}
	if id > hi {
		return id
	}
	k := id / chunkBits
	if leaf == nil {
		leaf = a.c.growLocked(k)
	}
	b := restore[chunk](leaf.at(k).Load())
	if b == nil {
		b = new(chunk)
		put(leaf.at(k), erase(b)) // pairs with find and with the Load in Next
	}
	w, bit := b.word(id)
	w.Store(w.Load() | bit) // pairs with the Loads in Contains and Next
	a.n++
	if id == a.low {
		a.low++
	}
	if w.Load() == allFull && b.full() {
		leaf.full |= 1 << (k % fan)
		a.c.taken++
		if leaf.full == allFull {
			leaf.filled()
		}
	}
	return id
}

// searchLocked returns the lowest free id of id or above, or one above hi if there is none that is
// not, and the leaf for its chunk, if there is one. All ids from id to it are taken. a.c.mu is held.
func (a *IDA) searchLocked(id, hi uintptr) (uintptr, *node) {
	for {
		k := id / chunkBits
		leaf := a.c.leafLocked(k)
		if leaf != nil && leaf.full>>(k%fan)&1 != 0 {
			k, leaf = leaf.free(k, hi/chunkBits)
			id = k * chunkBits
		}
		if leaf == nil || id > hi {
			return id, leaf
		}
		b := restore[chunk](leaf.at(k).Load())
		if b == nil {
			return id, leaf
		}
		bit := b.next(id%chunkBits, allFull)
		id = k*chunkBits + bit
		if bit < chunkBits {
			return id, leaf
		}
		// None above id in this chunk. The next has one, or is full, and then free finds one.
	}
}

// releaseLocked makes id free, and reports whether it was taken. a.c.mu is held.
func (a *IDA) releaseLocked(id uintptr) bool {
	k := id / chunkBits
	leaf := a.c.leafLocked(k)
	if leaf == nil {
		return false
	}
	b := restore[chunk](leaf.at(k).Load())
	if b == nil {
		return false
	}
	w, bit := b.word(id)
	if w.Load()&bit == 0 {
		return false
	}
	if leaf.full>>(k%fan)&1 != 0 {
		if leaf.full == allFull {
			leaf.opened()
		}
		leaf.full &^= 1 << (k % fan)
		a.c.taken--
	}
	w.Store(w.Load() &^ bit) // pairs with the Loads in Contains and Next
	a.n--
	a.low = min(a.low, id)
	if w.Load() == 0 && b.empty() {
		a.emptyLocked(k)
	}
	return true
}

// emptyLocked is told that chunk k has no ids any more. The last one to be emptied stays, so that
// one id that comes and goes does not make a chunk each time; the one before goes, if it is still
// empty. a.c.mu is held.
func (a *IDA) emptyLocked(k uintptr) {
	old := a.idle - 1
	a.idle = k + 1
	if old == k || old+1 == 0 {
		return
	}
	leaf := a.c.leafLocked(old)
	if b := restore[chunk](leaf.at(old).Load()); !b.empty() && mutant != mutantDropChunk {
		return
	}
	put(leaf.at(old), nil) // pairs with find and with the Load in Next
	for i := range leaf.slots {
		if leaf.slots[i].Load() != nil {
			return
		}
	}
	a.c.unlinkLocked(leaf)
}

// countLocked returns how many ids in [lo, hi] are taken. a.c.mu is held.
func (a *IDA) countLocked(lo, hi uintptr) (n uintptr) {
	for k, b := range a.chunksLocked(lo / chunkBits) {
		first := k * chunkBits
		if first > hi {
			break
		}
		n += uintptr(b.count(max(lo, first)-first, min(hi-first, chunkBits-1)))
	}
	return n
}

// chunksLocked returns an iterator over the chunks from number k on. a.c.mu is held.
func (a *IDA) chunksLocked(k uintptr) func(yield func(uintptr, *chunk) bool) {
	return func(yield func(uintptr, *chunk) bool) {
		root := a.c.root.Load()
		for leaf := root.next(k); leaf != nil; leaf = root.next(leaf.base + fan) {
			for i := max(k, leaf.base) - leaf.base; i < fan; i++ {
				if b := restore[chunk](leaf.at(i).Load()); b != nil && !yield(leaf.base+i, b) {
					return
				}
			}
		}
	}
}

// unlock unlocks a.c.mu. In builds with the tag invariants it looks at them first, as core.unlock
// does.
func (a *IDA) unlock() {
	if invariants && (a.c.nleaves < 4 || a.n%4096 == 0) {
		a.checkLocked()
	}
	a.c.mu.Unlock()
}
