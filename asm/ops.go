package asm

import (
	"runtime"
	"sync/atomic"

	"github.com/quiesce-go/quiesce/internal/pin"
)

// The operations of a Block that depend on what a word is. Each works in one
// column and is atomic with every other operation on that column: by a
// restartable sequence, pinned, or, in a column of the shared tier, by atomic
// instructions, and a lock where two words change. They do not allocate, and
// block only for that lock.

// What the assembly returns when it does not return a column.
const (
	seqNo     = -1 // the condition did not hold
	seqCannot = -2 // no sequence could run
)

// CompareAndSwap replaces old by new in word i of column col. It returns false
// if the word is not old, or if col is not the column that the caller is in; in the
// shared tier the caller may leave it in the middle, which makes it no less atomic.
// It may return false for no reason the caller can see, when its sequence was
// aborted 64 times in a row. On success it is a store-release of the word, and a
// load-acquire of what was there.
func (b *Block) CompareAndSwap(col, i int, old, new int64) bool {
	l := b.words()
	t := currentTier()
	if t == tierRSEQ && col < columns {
		for {
			if c := blockCompareAndSwap(b, i, col, old, new); c != seqCannot || !b.ready() {
				return c >= 0
			}
		}
	}
	if t == tierPinned && col < columns {
		p := pin.Pin()
		ok := p == col && cells{l, tierPinned, col}.swap(i, old, new)
		pin.Unpin()
		return ok
	}
	if col, ok := sharedOf(t, col); ok {
		ok = cells{l, tierShared, col}.swap(i, old, new)
		runtime.KeepAlive(l)
		return ok
	}
	return false
}

// sharedOf returns which column of the shared tier column col is in tier t, if
// it is the caller's.
func sharedOf(t, col int) (c int, ok bool) {
	if col != Column() {
		return 0, false
	}
	if t != tierShared {
		col -= columns
	}
	markUsed(tierShared)
	return col, col >= 0
}

// CompareAndSwapTwo is CompareAndSwap that also stores newj in word j, before
// it stores new. A sequence that is aborted in between leaves newj behind: word
// j must mean nothing until word i says so.
func (b *Block) CompareAndSwapTwo(col, i int, old, new int64, j int, newj int64) bool {
	l := b.words()
	t := currentTier()
	if t == tierRSEQ && col < columns {
		for {
			if c := blockSwapTwo(b, i, col, old, new, j, newj); c != seqCannot || !b.ready() {
				return c >= 0
			}
		}
	}
	if t == tierPinned && col < columns {
		p := pin.Pin()
		ok := p == col && cells{l, tierPinned, col}.swapTwo(i, old, new, j, newj)
		pin.Unpin()
		return ok
	}
	if col, ok := sharedOf(t, col); ok {
		l.mu.Lock()
		defer l.mu.Unlock() // keeps l alive
		return cells{l, tierShared, col}.swapTwo(i, old, new, j, newj)
	}
	return false
}

// Push pushes v on the stack in the caller's column: word i is the number of
// values on it, and the depth words behind are the values. It returns the
// column, or false if the stack is full. Only Push and Pop may touch those words,
// which Alloc has made.
func (b *Block) Push(i, depth int, v int64) (col int, ok bool) {
	for {
		c := blockPush(b, i, depth, v)
		if c != seqCannot {
			return c, c >= 0
		}
		if !b.ready() {
			return b.here(func(w cells) bool { return w.push(i, depth, v) })
		}
	}
}

// Pop pops the last value from the stack at word i in the caller's column. It
// returns false if the stack is empty. What its Push was ordered after, it is
// ordered after.
func (b *Block) Pop(i int) (v int64, ok bool) {
	for {
		c, v := blockPop(b, i)
		if c != seqCannot {
			return v, c >= 0
		}
		if !b.ready() {
			_, ok := b.here(func(w cells) (ok bool) {
				v, ok = w.pop(i)
				return ok
			})
			return v, ok
		}
	}
}

// AddWithin adds delta to word i of the caller's column if the result is above
// -bound and below bound, and reports whether it did, and the column.
func (b *Block) AddWithin(i int, delta, bound int64) (col int, ok bool) {
	for {
		c := blockAddWithin(b, i, delta, -bound, bound)
		if c != seqCannot {
			return c, c >= 0
		}
		if !b.ready() {
			return b.here(func(w cells) bool { return w.addWithin(i, delta, bound) })
		}
	}
}

// ready gives b memory and the thread an area, and reports whether one of the two
// was missing, so that a sequence is worth another try.
func (b *Block) ready() bool {
	fresh := b.lease.Load() == nil
	if fresh {
		b.Alloc(1)
	}
	return rseqThread() || fresh && rseqColumn() >= 0
}

// here runs op on the caller's column without a restartable sequence.
func (b *Block) here(op func(cells) bool) (col int, ok bool) {
	l := b.words()
	decide()
	if currentTier() == tierPinned {
		p := pin.Pin()
		if p < columns {
			ok = op(cells{l, tierPinned, p})
			pin.Unpin()
			return p, ok
		}
		pin.Unpin()
	}
	markUsed(tierShared)
	c := sharedColumn()
	l.mu.Lock()
	ok = op(cells{l, tierShared, c})
	l.mu.Unlock() // keeps l alive
	if currentTier() != tierShared {
		c += columns
	}
	return c, ok
}

// cells is a column of a Block. Its methods do what the sequences do, for a
// caller that is pinned to the column or, in the shared tier, holds the lease's
// lock. There single words may also be changed by atomic instructions of others
// at the same time.
type cells struct {
	l    *lease
	t, c int
}

func (w cells) load(i int) int64 { return atomic.LoadInt64(w.l.word(w.t, w.c, i)) }

func (w cells) store(i int, v int64) {
	if w.t == tierShared {
		atomic.StoreInt64(w.l.word(w.t, w.c, i), v)
	} else {
		StoreRelease(w.l.word(w.t, w.c, i), v)
	}
}

func (w cells) swap(i int, old, new int64) bool {
	if w.t == tierShared {
		return atomic.CompareAndSwapInt64(w.l.word(w.t, w.c, i), old, new)
	}
	if w.load(i) != old {
		return false
	}
	w.store(i, new)
	return true
}

func (w cells) swapTwo(i int, old, new int64, j int, newj int64) bool {
	if w.load(i) != old {
		return false
	}
	w.store(j, newj)
	return w.swap(i, old, new)
}

func (w cells) push(i, depth int, v int64) bool {
	n := w.load(i)
	if n >= int64(depth) {
		return false
	}
	w.store(i+1+int(n), v)
	w.store(i, n+1)
	return true
}

func (w cells) pop(i int) (v int64, ok bool) {
	n := w.load(i)
	if n == 0 {
		return 0, false
	}
	v = w.load(i + int(n))
	w.store(i, n-1)
	return v, true
}

func (w cells) addWithin(i int, delta, bound int64) bool {
	for {
		old := w.load(i)
		sum := old + delta
		if (sum > old) != (delta > 0) && delta != 0 || sum <= -bound || sum >= bound {
			return false
		}
		if w.swap(i, old, sum) {
			return true
		}
	}
}
