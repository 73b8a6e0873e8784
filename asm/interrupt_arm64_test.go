//go:build linux && !android && gc && !purego && !race && !go1.28

package asm

import "golang.org/x/sys/unix"

// The operations that there are several sequences for, by the sequence's name.
var (
	adds     = []namedAdd{{"blockAdd", blockAdd}, {"gateAdd", gateAdd}}
	tryLocks = []namedTryLock{{"blockTryLock", blockTryLock}}
	claims   = []namedClaim{{"seqClaim", claim}}
)

// onlyClaim is a claim that returns nil where it cannot; it is inlined.
func onlyClaim(c *Claims, v int64) *int64 { return seqClaim(c, v) }

var breakpoint = []byte{0x00, 0x00, 0x20, 0xd4} // BRK #0

// counter returns the program counter of a thread that was stopped by a step or a breakpoint.
func counter(tid int, _ uint64) (uint64, error) {
	const general = 1 // NT_PRSTATUS
	var regs unix.PtraceRegsArm64
	err := unix.PtraceGetRegSetArm64(tid, general, &regs)
	return regs.Pc, err
}

// armed returns the address of a sequence's first instruction.
func armed(s sequence) []uint64 { return []uint64{s.cs.start} }
