//go:build linux && gc && !purego

#include "textflag.h"

// func maxLeaf() uint32
TEXT ·maxLeaf(SB), NOSPLIT|NOFRAME, $0-4
	XORL AX, AX
	CPUID
	MOVL AX, ret+0(FP)
	RET

// func leaf7ECX() uint32
TEXT ·leaf7ECX(SB), NOSPLIT|NOFRAME, $0-4
	MOVL $7, AX
	XORL CX, CX
	CPUID
	MOVL CX, ret+0(FP)
	RET

// func rdpid() uint64
TEXT ·rdpid(SB), NOSPLIT|NOFRAME, $0-8
	RDPID AX
	MOVQ  AX, ret+0(FP)
	RET

// func rdtscp() uint64
TEXT ·rdtscp(SB), NOSPLIT|NOFRAME, $0-8
	RDTSCP
	MOVQ CX, ret+0(FP)
	RET

// func lsl() (limit uint64, ok bool)
//
// Selector 0x7b is entry 15 of the GDT, user privilege. LSL clears ZF where
// the caller may not see the segment.
TEXT ·lsl(SB), NOSPLIT|NOFRAME, $0-9
	XORL CX, CX
	MOVL $0x7b, AX
	LSLL AX, CX
	SETEQ ok+8(FP)
	MOVQ CX, limit+0(FP)
	RET
