//go:build linux && !android && gc && !purego && !race && !go1.28

package asm

import "syscall"

var breakpoint = []byte{0xcc} // INT3

// counter returns the program counter of a thread that was stopped by a step or by the breakpoint at stop, behind which
// it sets it back.
func counter(tid int, stop uint64) (uint64, error) {
	var regs syscall.PtraceRegs
	if err := syscall.PtraceGetRegs(tid, &regs); err != nil {
		return 0, err
	}
	if stop != 0 {
		regs.Rip--
		return regs.Rip, syscall.PtraceSetRegs(tid, &regs)
	}
	return regs.Rip, nil
}
