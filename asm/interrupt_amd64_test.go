//go:build linux && !android && gc && !purego && !race && !go1.28

package asm

import (
	"syscall"
	"unsafe"
)

// The operations that there are several sequences for, by the sequence's name.
var (
	adds = func() []namedAdd {
		all := []namedAdd{{"seqAdd", byRegisters[adder](&addCode)}, {"seqGateAdd", byRegisters[adder](&gateCode)}}
		if !isCgo {
			all = append(all, namedAdd{"seqAddOurs", byRegisters[adder](&addOursCode)}, namedAdd{"seqGateAddOurs", byRegisters[adder](&gateOursCode)})
		}
		return all
	}()
	tryLocks = func() []namedTryLock {
		all := []namedTryLock{{"seqTryLock", byRegisters[tryLocker](&lockCode)}}
		if !isCgo {
			all = append(all, namedTryLock{"seqTryLockOurs", byRegisters[tryLocker](&lockOursCode)})
		}
		return all
	}()
	claims = func() []namedClaim {
		all := []namedClaim{{"seqClaim", byRegisters[claimer](&claimCode)}}
		if !isCgo {
			all = append(all, namedClaim{"seqClaimOurs", byRegisters[claimer](&claimOursCode)})
		}
		return all
	}()
)

// onlyClaim is a claim that returns nil where it cannot; it is inlined.
func onlyClaim(c *Claims, v int64) *int64 { return claim(c, v, none) }

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

// armed returns the addresses of a sequence's first instructions, up to the one behind the jump if it is not armed.
func armed(s sequence) []uint64 {
	jump := s.cs.start + startInside
	behind := jump + 2
	if s.code[jump-uint64(uintptr(unsafe.Pointer(s.code)))] == 0x0f { // a far one
		behind = jump + 6
	}
	return []uint64{s.cs.start, jump, behind}
}
