package asm

// This file uses unsafe to hand out runs of words by their address.

import (
	"math/bits"
	"sync"
	"sync/atomic"
	"unsafe"
)

const (
	// columnShift is the stride from column to column: a chunk of per-CPU
	// memory has 64 KiB in each. The assembly knows it. A column is touched by
	// its own CPU first, so its pages lie on that CPU's node and a CPU that
	// never runs the program costs address space only.
	columnShift = 16
	columnBytes = 1 << columnShift
	classes     = 14 // words per run: 1<<0 to 1<<13
)

// A run is 1<<class words, at the same place in every column, from base on in
// column 0.
type run struct {
	base  unsafe.Pointer
	class int
}

// pool holds the runs that no Block uses. All their words are zero, in every
// column.
var pool runPool

type runPool struct {
	sync.Mutex
	free [classes][]unsafe.Pointer // by class
	info MemoryInfo
}

// MemoryInfo says what the per-CPU memory of this process takes.
type MemoryInfo struct {
	// Mapped is the bytes of address space, all tiers and columns together. It never
	// shrinks: memory of Blocks that are gone is used for new ones. Pages that no CPU
	// wrote to take no memory.
	Mapped int

	// Blocks is the number of Blocks that have words, and Words how many those are in
	// each column, rounded up to powers of two for each Block. Both shrink when the
	// garbage collector has found a Block unreachable.
	Blocks, Words int
}

// Memory returns what the per-CPU memory takes now. The buffers of Logs are not in it.
func Memory() MemoryInfo {
	pool.Lock()
	defer pool.Unlock()
	return pool.info
}

// takeLocked returns a run of 1<<class zero words, splitting a larger one or
// mapping another chunk if it must. Runs are never joined again: the sizes a
// program uses repeat. The caller holds the pool's lock.
func (p *runPool) takeLocked(class int) unsafe.Pointer {
	c := class
	for c < classes && len(p.free[c]) == 0 {
		c++
	}
	if c == classes {
		c = classes - 1
		n := columnBytes * columns * tierCount
		p.free[c] = append(p.free[c], newChunk(n))
		p.info.Mapped += n
	}
	p.info.Blocks++
	p.info.Words += 1 << class
	last := len(p.free[c]) - 1
	base := p.free[c][last]
	p.free[c] = p.free[c][:last]
	for c > class {
		c--
		p.free[c] = append(p.free[c], unsafe.Add(base, 8<<c))
	}
	return base
}

// release zeroes a run and gives it back. It runs when the run's lease is
// unreachable, so no operation on its words is under way or will be.
func release(r run) {
	l := lease{base: r.base}
	for t := range tierCount {
		for c := range columns {
			for i := range 1 << r.class {
				// A page that nobody wrote to stays unmapped: only loads touch it.
				if w := l.word(t, c, i); atomic.LoadInt64(w) != 0 {
					atomic.StoreInt64(w, 0)
				}
			}
		}
	}
	pool.Lock()
	defer pool.Unlock()
	pool.info.Blocks--
	pool.info.Words -= 1 << r.class
	pool.free[r.class] = append(pool.free[r.class], r.base)
}

// columns is the number of columns of each tier.
var columns = min(possibleCPUs(), maxColumns)

// maxColumns bounds the address space of a chunk; threads on CPUs beyond it
// fall back to the shared tier.
const maxColumns = 64 << (bits.UintSize / 64 * 7) // 64 or 8192
