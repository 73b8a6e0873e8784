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

// LOAD_AREA puts the address of the thread's area into AX and sets ZF if the
// thread has none. It uses CX. The byte is the FS prefix.
#define LOAD_AREA \
	MOVQ ·areaAt(SB), CX \
	BYTE $0x64; MOVQ (CX), AX \
	ADDQ ·areaDelta(SB), AX

// SIGNATURE ends the straight path and stands before the abort handler:
// UD1 with rseqSignature as its displacement.
#define SIGNATURE BYTE $0x0f; BYTE $0xb9; BYTE $0x3d; LONG $0x53053053

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
// not even the descriptor's address may be stored. Pairs with setRSEQColumns,
// which follows the stores to areaAt and areaDelta (loads are in order on TSO).

// func blockAdd(b *Block, i int, delta int64)
//
//	if cpu := area.cpu; cpu < rseqColumns { b.base[cpu<<16 + i*8] += delta }
//
// None needed on TSO: the add is a store, not passed by earlier loads or
// stores. It may be passed by later loads; Fence orders those.
TEXT ·blockAdd(SB), NOSPLIT|NOFRAME, $0-24
	MOVL ·rseqColumns(SB), R10
	TESTL R10, R10
	JEQ  slow
	LOAD_AREA
	JEQ  slow
	MOVQ b+0(FP), BX
	MOVQ (BX), BX // base
	TESTQ BX, BX
	JEQ  slow
	MOVQ i+8(FP), SI
	LEAQ (BX)(SI*8), BX
	MOVQ delta+16(FP), DI
	MOVL RETRIES, R8
	LEAQ ·addCS(SB), DX

rearm:
	MOVQ DX, 8(AX) // area.cs
	MOVL 4(AX), CX // area.cpu, zero-extended
	CMPL CX, R10
	JCC  slow
	SHLQ $16, CX
	ADDQ DI, (BX)(CX*1)
	RET
	SIGNATURE
	DECL R8
	JNE  rearm

slow:
	JMP ·blockAddSlow(SB)

// func blockCompareAndSwap(b *Block, col, i int, old, new int64) bool
//
//	if area.cpu == col && b.base[col<<16 + i*8] == old { that = new; true }
//
// None needed on TSO, as above.
TEXT ·blockCompareAndSwap(SB), NOSPLIT|NOFRAME, $0-41
	CMPL ·rseqColumns(SB), $0
	JEQ  no
	LOAD_AREA
	JEQ  no
	MOVQ b+0(FP), BX
	MOVQ (BX), BX
	TESTQ BX, BX
	JEQ  no
	MOVQ col+8(FP), R10
	MOVQ R10, CX
	SHLQ $16, CX
	ADDQ CX, BX
	MOVQ i+16(FP), SI
	LEAQ (BX)(SI*8), BX
	MOVQ old+24(FP), DI
	MOVQ new+32(FP), R9
	MOVL RETRIES, R8
	LEAQ ·casCS(SB), DX

rearm:
	MOVQ DX, 8(AX)
	MOVL 4(AX), CX
	CMPQ CX, R10
	JNE  no
	CMPQ (BX), DI
	JNE  no
	MOVQ R9, (BX)
	MOVB $1, ret+40(FP)
	RET
	SIGNATURE
	DECL R8
	JNE  rearm

no:
	MOVB $0, ret+40(FP)
	RET

// func areaCPU() int64
TEXT ·areaCPU(SB), NOSPLIT|NOFRAME, $0-8
	LOAD_AREA
	JEQ  none
	MOVL 4(AX), AX
	MOVQ AX, ret+0(FP)
	RET

none:
	MOVQ $0x7fffffffffffffff, AX
	MOVQ AX, ret+0(FP)
	RET

// func getArea() unsafe.Pointer
TEXT ·getArea(SB), NOSPLIT|NOFRAME, $0-8
	LOAD_AREA
	MOVQ AX, ret+0(FP)
	RET

// func setArea(a unsafe.Pointer)
TEXT ·setArea(SB), NOSPLIT|NOFRAME, $0-8
	MOVQ a+0(FP), AX
	MOVQ ·areaAt(SB), CX
	BYTE $0x64; MOVQ AX, (CX)
	RET

// func currentM() unsafe.Pointer
TEXT ·currentM(SB), NOSPLIT|NOFRAME, $0-8
	MOVQ (TLS), AX
	MOVQ 48(AX), AX // g.m
	MOVQ AX, ret+0(FP)
	RET

// func rseqProbe(n uint64) bool
TEXT ·rseqProbe(SB), NOSPLIT|NOFRAME, $0-9
	LOAD_AREA
	JEQ  none
	MOVQ n+0(FP), CX
	LEAQ ·probeCS(SB), DX
	MOVQ DX, 8(AX)

spin:
	DECQ CX
	JNE  spin
	MOVB $0, ret+8(FP)
	RET
	SIGNATURE
	MOVB $1, ret+8(FP)
	RET

none:
	MOVB $0, ret+8(FP)
	RET

// func cpu() int
TEXT ·cpu(SB), NOSPLIT|NOFRAME, $0-8
	MOVL ·rseqColumns(SB), R10
	TESTL R10, R10
	JEQ  norseq
	LOAD_AREA
	JEQ  slow
	MOVL 4(AX), AX
	CMPL AX, R10
	JCC  slow
	MOVQ AX, ret+0(FP)
	RET

norseq:
	CMPL ·useRDPID(SB), $0
	JEQ  slow
	RDPID AX
	ANDL $0xfff, AX
	MOVQ AX, ret+0(FP)
	RET

slow:
	JMP ·cpuSlow(SB)
