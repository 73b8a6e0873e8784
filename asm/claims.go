package asm

import (
	"runtime"
	"sync/atomic"
)

// ClaimWords is the number of words of each column of Claims: a cache line.
const ClaimWords = 8

// Claims are words of per-CPU memory of which each, while somebody has it, shows a value of
// his to whoever looks on: what hazard pointers and epochs have for each thread, these have
// for each CPU. A word is claimed on the CPU whose column it is in, by a restartable sequence, and so
// without a locked instruction. It is freed by any CPU's plain store.
//
// The zero Claims are shut. Make comes before everything else, and they must not be copied.
type Claims struct {
	block Block
}

// Make gives c its words, and leaves it shut.
func (c *Claims) Make() { c.block.alloc(ClaimWords, true, releaseClaims) }

// Claim stores v, which must not be 0, in the first word of the caller's column that is 0, and
// returns its address. If there is none, if c is shut, or if the thread cannot run a
// sequence, Claim returns what other(c, v) does. A thread can from its first
// operation of another kind on, such as an Add.
//
// The owner gives the word back by a StoreRelease of 0, once, and does not touch it
// afterwards. He need not keep c reachable for that: words of which one is still
// claimed are not used for anything else.
//
// Claim is ordered as a load-acquire of the 0, and as a store-release. It is no fence: later loads may
// pass the store. Fence orders those.
//
// It compiles to one call, takes about 2 ns, does not block and does not allocate.
func (c *Claims) Claim(v int64, other func(c *Claims, v int64) *int64) *int64 {
	return claim(c, v, other)
}

// Word returns word i of column col, which is below Columns, for those who look on: by atomic loads,
// which pair with Claim and with the owner's StoreRelease, and by a CompareAndSwap of what is not 0 to what is not 0
// either. c must be made, and reachable meanwhile. It costs a few instructions.
func (c *Claims) Word(col, i int) *int64 { return c.block.lease.Load().word(tierRSEQ, col, i) }

// Full reports whether each word of the caller's column is claimed. If the thread can run sequences, it can after the
// call. It costs some 10 ns, does not allocate, and orders nothing: it may be wrong by when it returns.
func (c *Claims) Full() bool {
	col := Column()
	if col >= columns || currentTier() != tierRSEQ {
		return false
	}
	for i := range ClaimWords {
		if atomic.LoadInt64(c.Word(col, i)) == 0 { // Orders nothing.
			return false
		}
	}
	return true
}

// Open lets Claims in, where there are restartable sequences. What happens before Open happens before one that gets a
// word. It does not allocate.
func (c *Claims) Open() {
	if decide(); rseqErr == nil {
		atomic.StorePointer(&c.block.base, c.block.lease.Load().base) // Pairs with the load in the sequence.
	}
}

// Shut keeps those out that begin after it. It waits for nobody: one that began before may get a word still, so
// whoever looks at the words goes on to do so.
func (c *Claims) Shut() { atomic.StorePointer(&c.block.base, nil) }

// releaseClaims is release of the words of Claims. One that is not 0 has an owner who will store to it: then the next
// garbage collection calls releaseClaims again.
func releaseClaims(r run) {
	l := lease{base: r.base}
	for col := range columns {
		for i := range ClaimWords {
			if atomic.LoadInt64(l.word(tierRSEQ, col, i)) != 0 { // Pairs with the owner's StoreRelease.
				runtime.AddCleanup(new(lease), releaseClaims, r)
				return
			}
		}
	}
	release(r)
}
