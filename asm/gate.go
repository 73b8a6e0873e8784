package asm

import (
	"sync/atomic"

	"github.com/quiesce-go/quiesce/internal/gate"
)

// A Gate is a Block that can be shut: after Shut no Add touches its words, and
// every Add that did is in the sums. It is what percpu.RWMutex and percpu.Ref
// are made of. It works on the rseq tier only, since it takes a fence that
// aborts sequences; Gates reports whether it does.
//
// The zero Gate is shut, and Make comes before Open and Shut. A Gate must not be
// copied.
type Gate struct {
	Block Block
}

// Gates reports whether Gates can be opened in this process.
func Gates() bool {
	decide()
	// Shut needs both fences.
	return currentTier() == tierRSEQ && membarrierRSEQOnce() == nil && membarrierOnce() == nil
}

// Make gives g n words, and leaves it shut. Gates must have returned true.
func (g *Gate) Make(n int) { g.Block.alloc(n, true, release) }

// Made reports whether g has words.
func (g *Gate) Made() bool { return g.Block.lease.Load() != nil }

// Add adds delta to word i in the caller's column. It compiles to one call of
// the assembly. If g is shut, or the caller cannot run a sequence, the slow path
// of package percpu is called instead, which internal/gate names; so only percpu can
// call it.
func (g *Gate) Add(_ gate.Owner, i int, delta int64) { gateAdd(&g.Block, i, delta) }

// TryAdd is Add that reports whether g was open, and does nothing if it was not.
func (g *Gate) TryAdd(i int, delta int64) bool {
	b := &g.Block
	for {
		if c := blockAddWithin(b, i, delta, -1<<63, 1<<63-1); c >= 0 {
			return true
		}
		if !rseqThread() {
			break
		}
	}
	l := b.lease.Load()
	if l == nil {
		return false
	}
	// A thread that cannot run a sequence: under the lock that Shut takes.
	l.mu.Lock()
	defer l.mu.Unlock()
	if atomic.LoadPointer(&b.base) == nil {
		return false
	}
	l.addShared(i, delta)
	return true
}

// Open lets Adds in. What happens before Open happens before an Add that
// touches the words.
func (g *Gate) Open() {
	l := g.Block.lease.Load()
	l.mu.Lock()
	defer l.mu.Unlock()
	atomic.StorePointer(&g.Block.base, l.base)
}

// Shut keeps Adds out. When it returns, every Add that touched the words is in
// what Sum returns. It costs two membarriers.
func (g *Gate) Shut() {
	l := g.Block.lease.Load()
	l.mu.Lock()
	atomic.StorePointer(&g.Block.base, nil)
	l.mu.Unlock()
	// A sequence that loaded base before has been committed, or is aborted and
	// loads nil. Pairs with ARM in rseq_$GOARCH.h.
	if !gate.NoFence {
		fenceSequences()
	}
}

// gateAddSlow is where gateAdd goes when a sequence cannot be used.
//
//lint:ignore U1000 the assembly jumps to it
func gateAddSlow(b *Block, i int, delta int64) { gate.Slow(gatePointer(b), i, delta) }
