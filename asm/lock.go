package asm

import (
	"sync/atomic"

	"github.com/quiesce-go/quiesce/internal/pin"
)

// A Lock is a word of a Block in one column, and guards what a program keeps for that column: liburcu's and
// librseq's per-CPU lock. It is taken by a restartable sequence, so without a locked instruction, and held like
// any other lock: the holder may be preempted, block, and go on on another CPU.
//
// The columns of all tiers are numbered here, because the holder may lose its tier: a slot below [Columns] is a
// CPU's, the others belong to Ps and to threads that fall back.
type Lock struct {
	_ noCopy

	held int64 // 0 or 1
}

// Slots returns the number of slots that TryLock can return.
func Slots() int { return tierCount * columns }

// Slot returns the slot that a TryLock of the caller would return now. It costs what Column does, and orders nothing.
func Slot() int {
	col := Column()
	switch t := currentTier(); {
	case t == tierShared:
		return tierShared*columns + col
	case col >= columns:
		return tierShared*columns + col - columns
	default:
		return t*columns + col
	}
}

// TryLock takes the lock at word i of the caller's column and returns it and its slot, or nil if it is
// taken, by whomever. The Lock may be used as long as b is reachable. TryLock compiles to one call, does not block,
// and does not allocate. A Block without words has no locks: it returns nil.
//
// It is a load-acquire: what Unlock was ordered after, it is ordered before. It is no fence: a later load may pass
// the store to the lock. Fence orders those.
func (b *Block) TryLock(i int) (l *Lock, slot int) { return blockTryLock(b, i) }

// Unlock gives the lock back, wherever the caller runs now. It is a store-release, and a full barrier until
// Membarrier has returned nil. It neither blocks nor allocates, and does not notice that l was not held.
func (l *Lock) Unlock() {
	// Pairs with the loads in blockTryLock, blockTryLockSlow and Held.
	if raceEnabled || !canFence.Load() {
		atomic.StoreInt64(&l.held, 0)
	} else {
		StoreRelease(&l.held, 0)
	}
}

// Held reports whether somebody holds the lock at word i of a slot. It is a load-acquire: pairs with Unlock.
func (b *Block) Held(slot, i int) bool { return atomic.LoadInt64(&b.lockAt(slot, i).held) != 0 }

// blockTryLockSlow is where blockTryLock goes when a sequence cannot be used.
//
//lint:ignore U1000 the assembly jumps to it
func blockTryLockSlow(b *Block, i int) (l *Lock, slot int) {
	if b.lease.Load() == nil {
		return nil, 0
	}
	if b.ready() {
		return blockTryLock(b, i)
	}
	if currentTier() == tierPinned {
		p := pin.Pin()
		if p < columns {
			slot = tierPinned*columns + p
			l = b.lockAt(slot, i)
			if atomic.LoadInt64(&l.held) == 0 { // Pairs with Unlock.
				StoreRelease(&l.held, 1)
			} else {
				l = nil
			}
			pin.Unpin()
			return l, slot
		}
		pin.Unpin()
	}
	markUsed(tierShared)
	slot = tierShared*columns + sharedColumn()
	// Pairs with Unlock.
	if l = b.lockAt(slot, i); !atomic.CompareAndSwapInt64(&l.held, 0, 1) {
		l = nil
	}
	return l, slot
}
