//go:build linux && !android && (amd64 || arm64) && gc && !purego && !race && !go1.28

package asm

import "unsafe"

// blockAdd adds delta to word i of b in the column of the CPU it runs on. It
// touches that word and the thread's rseq area. Where it cannot it jumps to
// blockAddSlow, so that callers inline to this one call.
//
// b escapes: blockAddSlow, which the compiler does not see behind it, may
// allocate for it.
func blockAdd(b *Block, i int, delta int64)

// blockCompareAndSwap stores new in word i of column col if the thread runs on
// CPU col and the word is old. It reports whether it did. The caller has seen
// to b's memory and checked i and col.
//
//go:noescape
func blockCompareAndSwap(b *Block, col, i int, old, new int64) bool

// cpu returns the CPU number from the thread's area; where there are no areas,
// from RDPID if useRDPID says so; else it jumps to cpuSlow.
func cpu() int

// areaCPU returns the cpu_id field of the thread's area, or a value above
// every CPU number where the thread has none.
func areaCPU() int64

// getArea returns the thread's area, nil if it has none of its own.
func getArea() unsafe.Pointer

// setArea makes a the thread's area. The caller is pinned.
//
//go:noescape
func setArea(a unsafe.Pointer)

// currentM returns the runtime's m of the thread.
func currentM() unsafe.Pointer

// rseqProbe spins n times inside a sequence and reports whether it was aborted.
func rseqProbe(n uint64) bool
