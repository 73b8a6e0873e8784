//go:build linux && !android && gc && !purego && !race && !go1.28

#include "textflag.h"
#include "rseq_arm64.h"

// Descriptors, filled at start-up (findSequences), and the code they describe.
GLOBL ·addCS(SB), NOPTR, $32
GLOBL ·gateCS(SB), NOPTR, $32
GLOBL ·probeCS(SB), NOPTR, $32
DATA ·addCode(SB)/8, $·blockAdd(SB)
GLOBL ·addCode(SB), NOPTR|RODATA, $8
DATA ·gateCode(SB)/8, $·gateAdd(SB)
GLOBL ·gateCode(SB), NOPTR|RODATA, $8
DATA ·probeCode(SB)/8, $·rseqProbe(SB)
GLOBL ·probeCode(SB), NOPTR|RODATA, $8

// A sequence starts behind the store of its descriptor's address and is over
// with its last instruction, the only store. If the thread was preempted,
// moved or signalled in between, the kernel lets it go on at the abort label.
// Nothing clears the descriptor's address afterwards: outside the sequence it
// means nothing, and the kernel clears it when it looks.

// func blockAdd(b *Block, i int, delta int64)
//
//	if cpu := area.cpu; cpu < rseqColumns { b.base[cpu<<16 + i*8] += delta }
//
// The commit is a store-release: what the caller did before, its earlier adds
// included, is visible to whoever sees it. Pairs with the atomic loads of Sum.
TEXT ·blockAdd(SB), NOSPLIT|NOFRAME, $0-24
	LOAD_BLOCK(·addCS, slow)
	MOVD delta+16(FP), R4

rearm:
	ARM(slow)
	MOVD (R6), R10
	ADD  R4, R10
	STLR R10, (R6)
	RET
	AGAIN(rearm)

slow:
	JMP ·blockAddSlow(SB)

// func gateAdd(b *Block, i int, delta int64)
//
// blockAdd with another slow path.
TEXT ·gateAdd(SB), NOSPLIT|NOFRAME, $0-24
	LOAD_BLOCK(·gateCS, slow)
	MOVD delta+16(FP), R4

rearm:
	ARM(slow)
	MOVD (R6), R10
	ADD  R4, R10
	STLR R10, (R6)
	RET
	AGAIN(rearm)

slow:
	JMP ·gateAddSlow(SB)

// func areaCPU() int64
TEXT ·areaCPU(SB), NOSPLIT|NOFRAME, $0-8
	LOAD_AREA(none)
	MOVWU 4(R0), R0
	MOVD  R0, ret+0(FP)
	RET

none:
	MOVD $0x7fffffffffffffff, R0
	MOVD R0, ret+0(FP)
	RET

// func getArea() unsafe.Pointer
TEXT ·getArea(SB), NOSPLIT|NOFRAME, $0-8
	LOAD_AREA(none)
	MOVD R0, ret+0(FP)
	RET

none:
	MOVD ZR, ret+0(FP)
	RET

// func rawArea() unsafe.Pointer
TEXT ·rawArea(SB), NOSPLIT|NOFRAME, $0-8
	MRS  TPIDR_EL0, R0
	MOVD R0, ret+0(FP)
	RET

// func setArea(a unsafe.Pointer)
TEXT ·setArea(SB), NOSPLIT|NOFRAME, $0-8
	MOVD a+0(FP), R0
	MSR  R0, TPIDR_EL0
	RET

// func currentM() unsafe.Pointer
TEXT ·currentM(SB), NOSPLIT|NOFRAME, $0-8
	MOVD 48(g), R0 // g.m
	MOVD R0, ret+0(FP)
	RET

// func rseqProbe(n uint64) bool
TEXT ·rseqProbe(SB), NOSPLIT|NOFRAME, $0-9
	LOAD_AREA(none)
	MOVD n+0(FP), R1
	MOVD $1, R2
	MOVD $·probeCS(SB), R5
	MOVD R5, 8(R0)

spin:
	SUB  $1, R1
	CBNZ R1, spin
	MOVB ZR, ret+8(FP)
	RET
	SIGNATURE
	MOVB R2, ret+8(FP)
	RET

none:
	MOVB ZR, ret+8(FP)
	RET

// func cpu() int
TEXT ·cpu(SB), NOSPLIT|NOFRAME, $0-8
	MOVD  $·rseqColumns(SB), R7
	LDARW (R7), R7
	CBZW  R7, slow
	LOAD_AREA(slow)
	MOVWU 4(R0), R0
	CMPW  R7, R0
	BHS   slow
	MOVD  R0, ret+0(FP)
	RET

slow:
	JMP ·cpuSlow(SB)
