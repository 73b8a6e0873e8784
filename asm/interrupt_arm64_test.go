//go:build linux && !android && gc && !purego && !race && !go1.28

package asm

import "golang.org/x/sys/unix"

var breakpoint = []byte{0x00, 0x00, 0x20, 0xd4} // BRK #0

// counter returns the program counter of a thread that was stopped by a step or a breakpoint.
func counter(tid int, _ uint64) (uint64, error) {
	const general = 1 // NT_PRSTATUS
	var regs unix.PtraceRegsArm64
	err := unix.PtraceGetRegSetArm64(tid, general, &regs)
	return regs.Pc, err
}
