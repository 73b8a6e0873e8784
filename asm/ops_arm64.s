//go:build linux && !android && gc && !purego && !race && !go1.28

#include "textflag.h"
#include "rseq_arm64.h"

// Descriptors, filled at start-up (findSequences), and the code they describe.
GLOBL ·casCS(SB), NOPTR, $32
GLOBL ·lockCS(SB), NOPTR, $32
GLOBL ·claimCS(SB), NOPTR, $32
GLOBL ·twoCS(SB), NOPTR, $32
GLOBL ·pushCS(SB), NOPTR, $32
GLOBL ·popCS(SB), NOPTR, $32
GLOBL ·withinCS(SB), NOPTR, $32
DATA ·casCode(SB)/8, $·blockCompareAndSwap(SB)
GLOBL ·casCode(SB), NOPTR|RODATA, $8
DATA ·lockCode(SB)/8, $·blockTryLock(SB)
GLOBL ·lockCode(SB), NOPTR|RODATA, $8
DATA ·claimCode(SB)/8, $·seqClaim(SB)
GLOBL ·claimCode(SB), NOPTR|RODATA, $8
DATA ·twoCode(SB)/8, $·blockSwapTwo(SB)
GLOBL ·twoCode(SB), NOPTR|RODATA, $8
DATA ·pushCode(SB)/8, $·blockPush(SB)
GLOBL ·pushCode(SB), NOPTR|RODATA, $8
DATA ·popCode(SB)/8, $·blockPop(SB)
GLOBL ·popCode(SB), NOPTR|RODATA, $8
DATA ·withinCode(SB)/8, $·blockAddWithin(SB)
GLOBL ·withinCode(SB), NOPTR|RODATA, $8

// Every operation returns a column, or -1 if the condition does not hold there,
// or -2 if no sequence could run, so that Go has to do it.
//
// The first load of a word that other threads wrote, on this CPU, is an acquire
// and the commit is a release, so an operation is ordered after the one whose
// result it found. rseq_arm64.s tells what a sequence is.

// func blockCompareAndSwap(b *Block, i, col int, old, new int64) int
//
//	if cpu != col || w[i] != old { return -1 }
//	w[i] = new
TEXT ·blockCompareAndSwap(SB), NOSPLIT|NOFRAME, $0-48
	LOAD_BLOCK(·casCS, cannot)
	MOVD col+16(FP), R4
	MOVD old+24(FP), R9
	MOVD new+32(FP), R10

rearm:
	ARM(cannot)
	CMP  R4, R11
	BNE  no
	LDAR (R6), R1
	CMP  R9, R1
	BNE  no
	STLR R10, (R6)
	MOVD R11, ret+40(FP)
	RET
	AGAIN(rearm)

cannot:
	MOVD $-2, R11
	MOVD R11, ret+40(FP)
	RET

no:
	MOVD $-1, R11
	MOVD R11, ret+40(FP)
	RET

// func blockTryLock(b *Block, i int) (l *Lock, slot int)
//
//	if w[i] != 0 { return nil, 0 }
//	w[i] = 1
TEXT ·blockTryLock(SB), NOSPLIT|NOFRAME, $0-32
	LOAD_BLOCK(·lockCS, slow)
	MOVD $1, R10

rearm:
	ARM(slow)
	LDAR (R6), R1
	CBNZ R1, no
	STLR R10, (R6)
	MOVD R6, ret+16(FP)
	MOVD R11, ret1+24(FP)
	RET
	AGAIN(rearm)

slow:
	JMP ·blockTryLockSlow(SB)

no:
	MOVD ZR, ret+16(FP)
	MOVD ZR, ret1+24(FP)
	RET

// func seqClaim(c *Claims, v int64) *int64
//
//	for i := range ClaimWords {
//		if w[i] == 0 {
//			w[i] = v
//			return &w[i]
//		}
//	}
//	return nil
//
// The words are the ones in 64 bytes of their own.
TEXT ·seqClaim(SB), NOSPLIT|NOFRAME, $0-24
	LOAD_THREAD(·claimCS, cannot)
	MOVD c+0(FP), R12
	MOVD v+8(FP), R10
	MOVD ZR, R3

rearm:
	ARM(cannot)
	LDAR (R6), R1
	CBZ  R1, free

busy:
	ADD  $8, R6
	TST  $63, R6
	BEQ  cannot
	LDAR (R6), R1
	CBNZ R1, busy

free:
	STLR R10, (R6)
	MOVD R6, ret+16(FP)
	RET
	AGAIN(rearm)

cannot:
	MOVD ZR, ret+16(FP)
	RET

// func blockSwapTwo(b *Block, i, col int, old, new int64, j int, newj int64) int
//
//	if cpu != col || w[i] != old { return -1 }
//	w[j] = newj // undone by nobody if the sequence is aborted behind it
//	w[i] = new
TEXT ·blockSwapTwo(SB), NOSPLIT|NOFRAME, $0-64
	LOAD_BLOCK(·twoCS, cannot)
	MOVD j+40(FP), R14
	LSL  $3, R14
	SUB  R3, R14 // from word i to word j
	MOVD col+16(FP), R4
	MOVD old+24(FP), R9
	MOVD new+32(FP), R10
	MOVD newj+48(FP), R13

rearm:
	ARM(cannot)
	CMP  R4, R11
	BNE  no
	LDAR (R6), R1
	CMP  R9, R1
	BNE  no
	ADD  R14, R6, R1
	MOVD R13, (R1)
	STLR R10, (R6)
	MOVD R11, ret+56(FP)
	RET
	AGAIN(rearm)

cannot:
	MOVD $-2, R11
	MOVD R11, ret+56(FP)
	RET

no:
	MOVD $-1, R11
	MOVD R11, ret+56(FP)
	RET

// func blockPush(b *Block, i int, depth int, v int64) int
//
//	n := w[i]
//	if n >= depth { return -1 }
//	w[i+1+n] = v
//	w[i] = n+1
TEXT ·blockPush(SB), NOSPLIT|NOFRAME, $0-40
	LOAD_BLOCK(·pushCS, cannot)
	MOVD depth+16(FP), R9
	MOVD v+24(FP), R13

rearm:
	ARM(cannot)
	LDAR (R6), R10
	CMP  R9, R10
	BHS  no
	ADD  R10<<3, R6, R1
	MOVD R13, 8(R1)
	ADD  $1, R10
	STLR R10, (R6)
	MOVD R11, ret+32(FP)
	RET
	AGAIN(rearm)

cannot:
	MOVD $-2, R11
	MOVD R11, ret+32(FP)
	RET

no:
	MOVD $-1, R11
	MOVD R11, ret+32(FP)
	RET

// func blockPop(b *Block, i int) (col int, v int64)
//
//	n := w[i]
//	if n == 0 { return -1, 0 }
//	v = w[i+n]
//	w[i] = n-1
TEXT ·blockPop(SB), NOSPLIT|NOFRAME, $0-32
	LOAD_BLOCK(·popCS, cannot)

rearm:
	ARM(cannot)
	LDAR (R6), R10
	CBZ  R10, no
	ADD  R10<<3, R6, R1
	MOVD (R1), R13
	SUB  $1, R10
	STLR R10, (R6)
	MOVD R11, col+16(FP)
	MOVD R13, v+24(FP)
	RET
	AGAIN(rearm)

cannot:
	MOVD $-2, R11
	MOVD R11, col+16(FP)
	MOVD ZR, v+24(FP)
	RET

no:
	MOVD $-1, R11
	MOVD R11, col+16(FP)
	MOVD ZR, v+24(FP)
	RET

// func blockAddWithin(b *Block, i int, delta, low, high int64) int
//
//	if sum := w[i] + delta; low < sum && sum < high { w[i] = sum } else { return -1 }
TEXT ·blockAddWithin(SB), NOSPLIT|NOFRAME, $0-48
	LOAD_BLOCK(·withinCS, cannot)
	MOVD delta+16(FP), R4
	MOVD low+24(FP), R9
	MOVD high+32(FP), R13

rearm:
	ARM(cannot)
	LDAR (R6), R10
	ADDS R4, R10
	BVS  no
	CMP  R9, R10
	BLE  no
	CMP  R13, R10
	BGE  no
	STLR R10, (R6)
	MOVD R11, ret+40(FP)
	RET
	AGAIN(rearm)

cannot:
	MOVD $-2, R11
	MOVD R11, ret+40(FP)
	RET

no:
	MOVD $-1, R11
	MOVD R11, ret+40(FP)
	RET
