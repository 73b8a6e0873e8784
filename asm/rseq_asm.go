//go:build linux && !android && (amd64 || arm64) && gc && !purego && !race && !go1.28

package asm

import "unsafe"

// What is declared for each architecture apart, because on amd64 it is called by
// registers (see calls_amd64_unsafe.go):
//
// blockAdd(b *Block, i int, delta int64) adds delta to word i of b in the column of
// the CPU it runs on. It touches that word and the thread's rseq area. Where it cannot
// it jumps to blockAddSlow, so that callers inline to this one call. b escapes:
// blockAddSlow may allocate for it.
//
// gateAdd(b *Block, i int, delta int64) is blockAdd that jumps to gateAddSlow instead.
//
// blockTryLock(b *Block, i int) (*Lock, int) takes the lock at word i in the column of
// the CPU it runs on and returns it and the column, or nil. Where it cannot it jumps to
// blockTryLockSlow.
//
// claim(c *Claims, v int64, other func(*Claims, int64) *int64) *int64 stores v in the first word that is 0 in the
// column of the CPU it runs on, and returns its address. Where it cannot it jumps to other.
//
// logWrite(l *Log, event uint32, payload []byte) bool appends a record to the caller's
// column of l. Where there is no room it jumps to logFull, and where it cannot tell to
// logSlow. It touches the words of l's column, from the head up to one record of its
// buffer, and the thread's rseq area; and reads payload, no byte more.

// The other operations return the column they worked in, or one of two negative
// numbers: seqNo, the condition did not hold, or seqCannot, no sequence could
// run. See the Block methods that use them.

//go:noescape
func blockCompareAndSwap(b *Block, i, col int, old, new int64) int

//go:noescape
func blockSwapTwo(b *Block, i, col int, old, new int64, j int, newj int64) int

//go:noescape
func blockPush(b *Block, i, depth int, v int64) int

//go:noescape
func blockPop(b *Block, i int) (col int, v int64)

//go:noescape
func blockAddWithin(b *Block, i int, delta, low, high int64) int

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
