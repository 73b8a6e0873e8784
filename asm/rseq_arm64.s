//go:build linux && !android && gc && !purego && !race && !go1.28

#include "textflag.h"

// Descriptors, filled at start-up (findSequences), and the code they describe.
GLOBL ·addCS(SB), NOPTR, $32
GLOBL ·casCS(SB), NOPTR, $32
GLOBL ·probeCS(SB), NOPTR, $32
DATA ·addCode(SB)/8, $·blockAdd(SB)
GLOBL ·addCode(SB), NOPTR|RODATA, $8
DATA ·casCode(SB)/8, $·blockCompareAndSwap(SB)
GLOBL ·casCode(SB), NOPTR|RODATA, $8
DATA ·probeCode(SB)/8, $·rseqProbe(SB)
GLOBL ·probeCode(SB), NOPTR|RODATA, $8

// LOAD_AREA puts the address of the thread's area into R0 and goes to none if
// the thread has none. clone copies TPIDR_EL0, so an area of ours belongs to
// the thread only if it names the thread's m (48(g) is g.m, 32(R0) is area.m).
// It uses R1 and R2.
#define LOAD_AREA(none) \
	MRS  TPIDR_EL0, R0 \
	MOVD ·areaDelta(SB), R1 \
	ADD  R1, R0 \
	CBZ  R0, none \
	MOVD ·foreign(SB), R1 \
	CBNZ R1, 5(PC) \
	MOVD 48(g), R1 \
	MOVD 32(R0), R2 \
	EOR  R1, R2, R1 \
	CBNZ R1, none

// SIGNATURE stands before the abort handler: BRK #0x45e0 (rseqSignature).
#define SIGNATURE WORD $0xd428bc00

// RETRIES bounds the aborts in a row before the slow path is taken, so that
// a single-stepping debugger or a storm of signals cannot stop an update.
#define RETRIES $64

// A sequence starts behind the store of its descriptor's address and is over
// with its last instruction, the only store. If the thread was preempted,
// moved or signalled in between, the kernel lets it go on at the abort label.
// Nothing clears the descriptor's address afterwards: outside the sequence it
// means nothing, and the kernel clears it when it looks.
//
// rseqColumns comes first: while it is 0 the thread's area may be nobody's, and
// not even the descriptor's address may be stored. LDAR pairs with the atomic
// store in setRSEQColumns, which follows the stores to areaDelta and foreign.

// func blockAdd(b *Block, i int, delta int64)
//
//	if cpu := area.cpu; cpu < rseqColumns { b.base[cpu<<16 + i*8] += delta }
//
// The commit is a store-release: what the caller did before, its earlier adds
// included, is visible to whoever sees it. Pairs with the atomic loads of Sum.
TEXT ·blockAdd(SB), NOSPLIT|NOFRAME, $0-24
	MOVD  $·rseqColumns(SB), R7
	LDARW (R7), R7
	CBZW  R7, slow
	LOAD_AREA(slow)
	MOVD  b+0(FP), R3
	MOVD  (R3), R3 // base
	CBZ   R3, slow
	MOVD  i+8(FP), R4
	ADD   R4<<3, R3
	MOVD  delta+16(FP), R4
	MOVD  RETRIES, R8
	MOVD  $·addCS(SB), R5

rearm:
	MOVD  R5, 8(R0) // area.cs
	MOVWU 4(R0), R6 // area.cpu
	CMPW  R7, R6
	BHS   slow
	ADD   R6<<16, R3, R6
	MOVD  (R6), R10
	ADD   R4, R10
	STLR  R10, (R6)
	RET
	SIGNATURE
	SUBW  $1, R8
	CBNZW R8, rearm

slow:
	JMP ·blockAddSlow(SB)

// func blockCompareAndSwap(b *Block, col, i int, old, new int64) bool
//
//	if area.cpu == col && b.base[col<<16 + i*8] == old { that = new; true }
//
// The load is an acquire, the commit a release.
TEXT ·blockCompareAndSwap(SB), NOSPLIT|NOFRAME, $0-41
	MOVD  $·rseqColumns(SB), R7
	LDARW (R7), R7
	CBZW  R7, no
	LOAD_AREA(no)
	MOVD  b+0(FP), R3
	MOVD  (R3), R3
	CBZ   R3, no
	MOVD  col+8(FP), R9
	MOVD  i+16(FP), R4
	ADD   R4<<3, R3
	ADD   R9<<16, R3, R6
	MOVD  old+24(FP), R3
	MOVD  new+32(FP), R4
	MOVD  RETRIES, R8
	MOVD  $·casCS(SB), R5

rearm:
	MOVD  R5, 8(R0)
	MOVWU 4(R0), R10
	CMP   R9, R10
	BNE   no
	LDAR  (R6), R10
	CMP   R3, R10
	BNE   no
	STLR  R4, (R6)
	MOVD  $1, R0
	MOVB  R0, ret+40(FP)
	RET
	SIGNATURE
	SUBW  $1, R8
	CBNZW R8, rearm

no:
	MOVB ZR, ret+40(FP)
	RET

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
