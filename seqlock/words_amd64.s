//go:build gc && !purego && !race

#include "textflag.h"
#include "go_asm.h"

// There is no fence in this file, and only store has a locked instruction, to
// take seq. None is needed on TSO: loads are not reordered with other loads,
// nor stores with other stores, whatever their size; and of seq and T a reader
// only loads, a writer only stores. (Streaming and string stores would be an
// exception; there are none.)

#define SEQ head_seq(BX)

// COPY copies CX bytes from SI to DI, the last ones twice where that saves a
// branch. Changes SI, DI, CX, AX, R8, X0-X3.
#define COPY \
	CMPQ CX, $64; \
	JA   over64; \
	CMPQ CX, $32; \
	JB   under32; \
last64: \
	MOVUPS (SI), X0; \
	MOVUPS 16(SI), X1; \
	MOVUPS -32(SI)(CX*1), X2; \
	MOVUPS -16(SI)(CX*1), X3; \
	MOVUPS X0, (DI); \
	MOVUPS X1, 16(DI); \
	MOVUPS X2, -32(DI)(CX*1); \
	MOVUPS X3, -16(DI)(CX*1); \
	JMP  copied; \
under32: \
	CMPQ CX, $16; \
	JB   under16; \
	MOVUPS (SI), X0; \
	MOVUPS -16(SI)(CX*1), X1; \
	MOVUPS X0, (DI); \
	MOVUPS X1, -16(DI)(CX*1); \
	JMP  copied; \
under16: \
	CMPQ CX, $8; \
	JB   under8; \
	MOVQ (SI), AX; \
	MOVQ -8(SI)(CX*1), R8; \
	MOVQ AX, (DI); \
	MOVQ R8, -8(DI)(CX*1); \
	JMP  copied; \
under8: \
	CMPQ CX, $4; \
	JB   under4; \
	MOVL (SI), AX; \
	MOVL -4(SI)(CX*1), R8; \
	MOVL AX, (DI); \
	MOVL R8, -4(DI)(CX*1); \
	JMP  copied; \
under4: \
	CMPQ CX, $2; \
	JB   under2; \
	MOVW (SI), AX; \
	MOVB -1(SI)(CX*1), R8; \
	MOVW AX, (DI); \
	MOVB R8, -1(DI)(CX*1); \
	JMP  copied; \
under2: \
	TESTQ CX, CX; \
	JEQ  copied; \
	MOVB (SI), AX; \
	MOVB AX, (DI); \
	JMP  copied; \
over64: \
	CMPQ CX, $128; \
	JB   loop64; \
	CMPB ·useAVX(SB), $0; \
	JEQ  loop64; \
loop128: \
	VMOVUPS (SI), Y0; \
	VMOVUPS 32(SI), Y1; \
	VMOVUPS 64(SI), Y2; \
	VMOVUPS 96(SI), Y3; \
	VMOVUPS Y0, (DI); \
	VMOVUPS Y1, 32(DI); \
	VMOVUPS Y2, 64(DI); \
	VMOVUPS Y3, 96(DI); \
	SUBQ $128, CX; \
	JEQ  wide; \
	ADDQ $128, SI; \
	ADDQ $128, DI; \
	CMPQ CX, $128; \
	JAE  loop128; \
	LEAQ -128(SI)(CX*1), SI; \
	LEAQ -128(DI)(CX*1), DI; \
	MOVL $128, CX; \
	JMP  loop128; \
loop64: \
	MOVUPS (SI), X0; \
	MOVUPS 16(SI), X1; \
	MOVUPS 32(SI), X2; \
	MOVUPS 48(SI), X3; \
	MOVUPS X0, (DI); \
	MOVUPS X1, 16(DI); \
	MOVUPS X2, 32(DI); \
	MOVUPS X3, 48(DI); \
	SUBQ $64, CX; \
	ADDQ $64, SI; \
	ADDQ $64, DI; \
	CMPQ CX, $64; \
	JA   loop64; \
	LEAQ -64(SI)(CX*1), SI; \
	LEAQ -64(DI)(CX*1), DI; \
	MOVL $64, CX; \
	JMP  last64; \
wide: \
	VZEROUPPER; \
copied:

// func load(h *head, dst any, n uintptr)
//
//	s := h.seq
//	if s&open == 0 { goto loadSlow }
//	copy n bytes from h's T to *dst
//	if (h.seq^s)&^owned != 0 { goto loadSlow }
TEXT ·load(SB), NOSPLIT, $0-32
	MOVQ h+0(FP), BX
	MOVQ dst_data+16(FP), DI
	MOVQ n+24(FP), CX
	LEAQ head__size(BX), SI
	MOVQ SEQ, DX // Pairs with the last step of store and publish.
	TESTB $const_open, DX
	JEQ  slow
	COPY
	XORQ SEQ, DX // Pairs with the first step of store and publish.
	TESTQ $~const_owned, DX
	JNE  slow
	RET
slow:
	JMP  ·loadSlow(SB)

// func store(h *head, src any, n uintptr)
//
//	s := h.seq
//	if s&states != open || !cas(&h.seq, s, s-open+owned) { goto storeSlow }
//	copy n bytes from *src to h's T
//	h.seq = s + oneWrite
//	if h.waiting != 0 { goto storeRest }
TEXT ·store(SB), NOSPLIT, $0-32
	MOVQ h+0(FP), BX
	MOVQ SEQ, AX
	MOVL AX, CX
	ANDL $const_states, CX
	CMPL CX, $const_open
	JNE  slow
	LEAQ (const_owned-const_open)(AX), DX
	LOCK
	CMPXCHGQ DX, SEQ // Pairs with the end of load.
	JNE  slow
	MOVQ src_data+16(FP), SI
	MOVQ n+24(FP), CX
	LEAQ head__size(BX), DI
	ADDQ $(const_oneWrite-const_owned+const_open), DX
	COPY
	MOVQ DX, SEQ // Pairs with the start of load.
	CMPL head_waiting(BX), $0 // A hint, which needs no order.
	JNE  rest
	RET
rest:
	JMP  ·storeRest(SB)
slow:
	JMP  ·storeSlow(SB)

// func publish(h *head, src any, n uintptr)
//
//	s := h.seq
//	h.seq = s - open
//	copy n bytes from *src to h's T
//	h.seq = s + oneWrite
TEXT ·publish(SB), NOSPLIT, $0-32
	MOVQ h+0(FP), BX
	MOVQ src_data+16(FP), SI
	MOVQ n+24(FP), CX
	LEAQ head__size(BX), DI
	MOVQ SEQ, DX
	SUBQ $const_open, DX
	MOVQ DX, SEQ // Pairs with the end of load.
	ADDQ $(const_oneWrite+const_open), DX
	COPY
	MOVQ DX, SEQ // Pairs with the start of load.
	RET

#define LATCHSEQ latch_seq(BX)

// func loadLatch(h *latch, dst any, n, stride uintptr)
//
//	s := h.seq
//	if s == 0 { goto loadLatchSlow }
//	copy n bytes from the half with s's version to *dst
//	if h.seq - s&^writing >= oneWrite+writing { goto loadLatchSlow }
TEXT ·loadLatch(SB), NOSPLIT, $0-40
	MOVQ h+0(FP), BX
	MOVQ dst_data+16(FP), DI
	MOVQ n+24(FP), CX
	LEAQ latch__size(BX), SI
	MOVQ stride+32(FP), AX
	ADDQ SI, AX
	MOVQ LATCHSEQ, DX // Pairs with the last step of writeLatch.
	TESTQ DX, DX
	JEQ  slow
	TESTB $const_oneWrite, DX
	CMOVQNE AX, SI
	ANDQ $~const_writing, DX
	COPY
	MOVQ LATCHSEQ, AX // Pairs with the first step of writeLatch.
	SUBQ DX, AX
	CMPQ AX, $(const_oneWrite+const_writing)
	JAE  slow
	RET
slow:
	JMP  ·loadLatchSlow(SB)

// func writeLatch(h *latch, src any, n, stride uintptr)
//
//	s := h.seq
//	h.seq = s + writing
//	copy n bytes from *src to the half without s's version
//	h.seq = s + oneWrite
TEXT ·writeLatch(SB), NOSPLIT, $0-40
	MOVQ h+0(FP), BX
	MOVQ src_data+16(FP), SI
	MOVQ n+24(FP), CX
	LEAQ latch__size(BX), DI
	MOVQ stride+32(FP), AX
	ADDQ DI, AX
	MOVQ LATCHSEQ, DX
	ADDQ $const_writing, DX
	MOVQ DX, LATCHSEQ // Pairs with the end of loadLatch.
	TESTB $const_oneWrite, DX
	CMOVQEQ AX, DI
	ADDQ $(const_oneWrite-const_writing), DX
	COPY
	MOVQ DX, LATCHSEQ // Pairs with the start of loadLatch.
	RET
