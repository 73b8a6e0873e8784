//go:build linux && !android && gc && !purego && !race && !go1.28

#include "go_asm.h"
#include "textflag.h"
#include "rseq_amd64.h"

// Descriptors, filled at start-up (findSequences), and the code they describe.
GLOBL ·casCS(SB), NOPTR, $32
GLOBL ·lockCS(SB), NOPTR, $32
GLOBL ·lockOursCS(SB), NOPTR, $32
GLOBL ·claimCS(SB), NOPTR, $32
GLOBL ·claimOursCS(SB), NOPTR, $32
GLOBL ·twoCS(SB), NOPTR, $32
GLOBL ·pushCS(SB), NOPTR, $32
GLOBL ·popCS(SB), NOPTR, $32
GLOBL ·withinCS(SB), NOPTR, $32
DATA ·casCode(SB)/8, $·blockCompareAndSwap(SB)
GLOBL ·casCode(SB), NOPTR|RODATA, $8
DATA ·lockCode(SB)/8, $·seqTryLock(SB)
GLOBL ·lockCode(SB), NOPTR|RODATA, $8
DATA ·lockOursCode(SB)/8, $·seqTryLockOurs(SB)
GLOBL ·lockOursCode(SB), NOPTR|RODATA, $8
DATA ·claimCode(SB)/8, $·seqClaim(SB)
GLOBL ·claimCode(SB), NOPTR|RODATA, $8
DATA ·claimOursCode(SB)/8, $·seqClaimOurs(SB)
GLOBL ·claimOursCode(SB), NOPTR|RODATA, $8
DATA ·twoCode(SB)/8, $·blockSwapTwo(SB)
GLOBL ·twoCode(SB), NOPTR|RODATA, $8
DATA ·pushCode(SB)/8, $·blockPush(SB)
GLOBL ·pushCode(SB), NOPTR|RODATA, $8
DATA ·popCode(SB)/8, $·blockPop(SB)
GLOBL ·popCode(SB), NOPTR|RODATA, $8
DATA ·withinCode(SB)/8, $·blockAddWithin(SB)
GLOBL ·withinCode(SB), NOPTR|RODATA, $8

// Every operation returns a column, or one of these: the condition does not
// hold there, or no sequence could run, so that Go has to do it.
#define NO $-1
#define CANNOT $-2

// No fence is needed on TSO in any of these: a commit is a store, not passed by
// earlier loads and stores. rseq_amd64.s tells what a sequence is.

// func blockCompareAndSwap(b *Block, i, col int, old, new int64) int
//
//	if cpu != col || w[i] != old { return NO }
//	w[i] = new
TEXT ·blockCompareAndSwap(SB), NOSPLIT|NOFRAME, $0-48
	LOAD_BLOCK(·casCS, cannot)
	MOVQ col+16(FP), R11
	MOVQ old+24(FP), DI
	MOVQ new+32(FP), R9

rearm:
	ARM(cannot)
	CMPQ CX, R11
	JNE  no
	SHLQ $16, CX
	CMPQ (R13)(CX*1), DI
	JNE  no
	MOVQ R9, (R13)(CX*1)
	MOVQ R11, ret+40(FP)
	RET
	AGAIN(rearm)

cannot:
	MOVQ CANNOT, ret+40(FP)
	RET

no:
	MOVQ NO, ret+40(FP)
	RET

// seqTryLock is blockTryLock(b *Block, i int) (l *Lock, slot int), called by registers:
//
//	if w[i] != 0 { return nil, 0 }
//	w[i] = 1
TEXT ·seqTryLock(SB), NOSPLIT|NOFRAME, $0-0
	LOAD_SHARED(·lockCS, slow)
	MOVL $1, R9

rearm:
	ARM_KEPT(slow)
	MOVQ CX, R11
	SHLQ $16, CX
	CMPQ (R13)(CX*1), $0
	JNE  no
	MOVQ R9, (R13)(CX*1)
	LEAQ (R13)(CX*1), AX
	MOVQ R11, BX
	RET
	AGAIN_SHARED(rearm, slow)

slow:
	GO(·blockTryLockGo)

no:
	XORL AX, AX
	XORL BX, BX
	RET

// seqTryLockOurs is seqTryLock without cgo.
TEXT ·seqTryLockOurs(SB), NOSPLIT|NOFRAME, $0-0
	LOAD_OURS(·lockOursCS, slow)
	MOVL $1, R9

rearm:
	ARM_KEPT(slow)
	MOVQ CX, R11
	SHLQ $16, CX
	CMPQ (R13)(CX*1), $0
	JNE  no
	MOVQ R9, (R13)(CX*1)
	LEAQ (R13)(CX*1), AX
	MOVQ R11, BX
	RET
	AGAIN_OURS(rearm, slow)

slow:
	GO(·blockTryLockGo)

no:
	XORL AX, AX
	XORL BX, BX
	RET

// CLAIM is the sequence of a claim of v, in BX, by the CPU number that was kept, in R10. It goes on at other
// if that is not the thread's, and at slow if no word is 0.
#define CLAIM \
	CMPQ DX, 8(AX) \
	JNE  arm \
	CMPL R10, 4(AX) \
	JNE  other \
	SHLQ $16, R10 \
	CMPQ (R13)(R10*1), $0 \
	JEQ  free \
busy: \
	ADDQ  $8, R10 \
	TESTQ $(8*const_ClaimWords-1), R10 \
	JEQ   slow \
	CMPQ  (R13)(R10*1), $0 \
	JNE   busy \
free: \
	MOVQ BX, (R13)(R10*1) \
	LEAQ (R13)(R10*1), AX \
	RET

// seqClaim is claim(c *Claims, v int64, other func(*Claims, int64) *int64) *int64, called by registers:
//
//	for i := range ClaimWords {
//		if w[i] == 0 {
//			w[i] = v
//			return &w[i]
//		}
//	}
//	return other(c, v)
//
// The words are the ones in a cache line of their own. Two loads that other sequences begin with are left out or
// elsewhere. c.base is no part of this one, since it is nil or always the same; and where it is not nil there are
// sequences (Open), so that rseqColumns is wanted only for another number than the one that was kept.
TEXT ·seqClaim(SB), NOSPLIT|NOFRAME, $0-0
	MOVQ AX, SI
	MOVQ (SI), R13 // pairs with Open
	TESTQ R13, R13
	JEQ  slow
	KEPT_AT(R12)
	LOAD_AREA
	JEQ  slow
	MOVL (R12), R10
	MOVL RETRIES, R8
	LEAQ ·claimCS(SB), DX

rearm:
	CLAIM

other:
	MOVL 4(AX), R10
	CMPL R10, ·rseqColumns(SB)
	JCC  slow
	CMPL R8, RETRIES
	JEQ  rearm
	MOVL R10, (R12)
	JMP  rearm
	SIGNATURE
	MOVL (R12), R10
	REARM(rearm)

slow:
	MOVQ SI, AX
	MOVQ CX, DX
	MOVQ (DX), R13
	JMP  R13

// seqClaimOurs is seqClaim without cgo.
TEXT ·seqClaimOurs(SB), NOSPLIT|NOFRAME, $0-0
	MOVQ AX, SI
	MOVQ (SI), R13 // pairs with Open
	TESTQ R13, R13
	JEQ  slow
	MOVQ 0(FS), AX
	TESTQ AX, AX
	JEQ  slow
	MOVL 8(FS), R10
	MOVL RETRIES, R8
	LEAQ ·claimOursCS(SB), DX

rearm:
	CLAIM

other:
	MOVL 4(AX), R10
	CMPL R10, ·rseqColumns(SB)
	JCC  slow
	MOVL R10, 8(FS)
	JMP  rearm
	SIGNATURE
	MOVL 8(FS), R10
	REARM(rearm)

slow:
	MOVQ SI, AX
	MOVQ CX, DX
	MOVQ (DX), R13
	JMP  R13

// func blockSwapTwo(b *Block, i, col int, old, new int64, j int, newj int64) int
//
//	if cpu != col || w[i] != old { return NO }
//	w[j] = newj // undone by nobody if the sequence is aborted behind it
//	w[i] = new
TEXT ·blockSwapTwo(SB), NOSPLIT|NOFRAME, $0-64
	LOAD_BLOCK(·twoCS, cannot)
	MOVQ j+40(FP), R11
	SHLQ $3, R11
	SUBQ BX, R11 // from word i to word j
	MOVQ old+24(FP), DI
	MOVQ new+32(FP), R9
	MOVQ newj+48(FP), R12

rearm:
	ARM(cannot)
	CMPQ CX, col+16(FP)
	JNE  no
	SHLQ $16, CX
	ADDQ R13, CX
	CMPQ (CX), DI
	JNE  no
	MOVQ R12, (CX)(R11*1)
	MOVQ R9, (CX)
	MOVQ col+16(FP), CX
	MOVQ CX, ret+56(FP)
	RET
	AGAIN(rearm)

cannot:
	MOVQ CANNOT, ret+56(FP)
	RET

no:
	MOVQ NO, ret+56(FP)
	RET

// func blockPush(b *Block, i int, depth int, v int64) int
//
//	n := w[i]
//	if n >= depth { return NO }
//	w[i+1+n] = v
//	w[i] = n+1
TEXT ·blockPush(SB), NOSPLIT|NOFRAME, $0-40
	LOAD_BLOCK(·pushCS, cannot)
	MOVQ depth+16(FP), DI
	MOVQ v+24(FP), R12

rearm:
	ARM(cannot)
	MOVQ CX, R11
	SHLQ $16, CX
	ADDQ R13, CX
	MOVQ (CX), R9
	CMPQ R9, DI
	JCC  no
	MOVQ R12, 8(CX)(R9*8)
	INCQ R9
	MOVQ R9, (CX)
	MOVQ R11, ret+32(FP)
	RET
	AGAIN(rearm)

cannot:
	MOVQ CANNOT, ret+32(FP)
	RET

no:
	MOVQ NO, ret+32(FP)
	RET

// func blockPop(b *Block, i int) (col int, v int64)
//
//	n := w[i]
//	if n == 0 { return NO, 0 }
//	v = w[i+n]
//	w[i] = n-1
TEXT ·blockPop(SB), NOSPLIT|NOFRAME, $0-32
	LOAD_BLOCK(·popCS, cannot)

rearm:
	ARM(cannot)
	MOVQ CX, R11
	SHLQ $16, CX
	ADDQ R13, CX
	MOVQ (CX), R9
	TESTQ R9, R9
	JEQ  no
	MOVQ (CX)(R9*8), R12
	DECQ R9
	MOVQ R9, (CX)
	MOVQ R11, col+16(FP)
	MOVQ R12, v+24(FP)
	RET
	AGAIN(rearm)

cannot:
	MOVQ CANNOT, col+16(FP)
	MOVQ $0, v+24(FP)
	RET

no:
	MOVQ NO, col+16(FP)
	MOVQ $0, v+24(FP)
	RET

// func blockAddWithin(b *Block, i int, delta, low, high int64) int
//
//	if sum := w[i] + delta; low < sum && sum < high { w[i] = sum } else { return NO }
TEXT ·blockAddWithin(SB), NOSPLIT|NOFRAME, $0-48
	LOAD_BLOCK(·withinCS, cannot)
	MOVQ delta+16(FP), DI

rearm:
	ARM(cannot)
	MOVQ CX, R11
	SHLQ $16, CX
	MOVQ (R13)(CX*1), R9
	ADDQ DI, R9
	JOS  no
	CMPQ R9, low+24(FP)
	JLE  no
	CMPQ R9, high+32(FP)
	JGE  no
	MOVQ R9, (R13)(CX*1)
	MOVQ R11, ret+40(FP)
	RET
	AGAIN(rearm)

cannot:
	MOVQ CANNOT, ret+40(FP)
	RET

no:
	MOVQ NO, ret+40(FP)
	RET
