//go:build gc && !purego && !race && !go1.28

#include "textflag.h"
#include "go_asm.h"

// There is no fence in this file, and only storeR has a locked instruction, to
// take seq. None is needed on TSO: loads are not reordered with other loads,
// nor stores with other stores, whatever their size; and of seq and T a reader
// only loads, a writer only stores. (Streaming and string stores would be an
// exception; there are none.)
//
// loadR, storeR and loadLatchR are called with arguments in registers, as
// words_asm_unsafe.go says. They keep these until they are past the last jump to
// a slow path, which wants them there too.

#define H AX
#define P BX
#define N CX
#define S DX
#define FROM R9
#define TO R10
#define TMP R11
#define TMP2 R12
#define SEQ head_seq(H)

// JUMP calls a Go func with the arguments that are in registers, for good. It jumps
// by a register, as the assembler's -spectre=ret wants it.
#define JUMP(func) \
	MOVQ func(SB), DX; \
	MOVQ (DX), TMP; \
	JMP  TMP

// MOVEOUT and MOVEIN copy 16 bytes, out of a T that is shared and into one. What
// goes in is loaded by words, since it has often been changed by words just now: a
// load of more than one earlier store has written waits until that store is in
// the cache, for 5 ns. It is stored by words too, which matters as much: see
// docs/seqlock.md.
#define MOVEOUT(d) \
	MOVUPS d(FROM), X0; \
	MOVUPS X0, d(TO)
#define MOVEIN(d) \
	MOVQ d(FROM), TMP; \
	MOVQ d+8(FROM), TMP2; \
	MOVQ TMP, d(TO); \
	MOVQ TMP2, d+8(TO)

// COPY copies N bytes from FROM to TO, the last ones twice where that saves a
// branch, and goes on with DONE, which ends in RET. That is there for each range
// of sizes: a jump that is taken costs as much as a copy of 16 bytes. Up to 64
// bytes are copied by MOVE. Changes FROM, TO, TMP, TMP2, X0-X3.
#define COPY(MOVE, DONE) \
	CMPQ N, $16; \
	JA   over16; \
	JB   under16; \
	MOVE(0); \
	DONE; \
under16: \
	CMPQ N, $8; \
	JB   under8; \
	MOVQ (FROM), TMP; \
	MOVQ -8(FROM)(N*1), TMP2; \
	MOVQ TMP, (TO); \
	MOVQ TMP2, -8(TO)(N*1); \
	DONE; \
under8: \
	CMPQ N, $4; \
	JB   under4; \
	MOVL (FROM), TMP; \
	MOVL -4(FROM)(N*1), TMP2; \
	MOVL TMP, (TO); \
	MOVL TMP2, -4(TO)(N*1); \
	DONE; \
under4: \
	CMPQ N, $2; \
	JB   under2; \
	MOVW (FROM), TMP; \
	MOVB -1(FROM)(N*1), TMP2; \
	MOVW TMP, (TO); \
	MOVB TMP2, -1(TO)(N*1); \
	DONE; \
under2: \
	TESTQ N, N; \
	JEQ  copied; \
	MOVB (FROM), TMP; \
	MOVB TMP, (TO); \
copied: \
	DONE; \
over16: \
	CMPQ N, $64; \
	JA   over64; \
	CMPQ N, $32; \
	JB   under32; \
	MOVE(0); \
	MOVE(16); \
	ADDQ N, FROM; \
	ADDQ N, TO; \
	MOVE(-32); \
	MOVE(-16); \
	DONE; \
under32: \
	MOVE(0); \
	ADDQ N, FROM; \
	ADDQ N, TO; \
	MOVE(-16); \
	DONE; \
over64: \
	MOVQ N, TMP; \
	CMPQ TMP, $128; \
	JB   loop64; \
	CMPB ·useAVX(SB), $0; \
	JEQ  loop64; \
loop128: \
	VMOVUPS (FROM), Y0; \
	VMOVUPS 32(FROM), Y1; \
	VMOVUPS 64(FROM), Y2; \
	VMOVUPS 96(FROM), Y3; \
	VMOVUPS Y0, (TO); \
	VMOVUPS Y1, 32(TO); \
	VMOVUPS Y2, 64(TO); \
	VMOVUPS Y3, 96(TO); \
	SUBQ $128, TMP; \
	JEQ  wide; \
	ADDQ $128, FROM; \
	ADDQ $128, TO; \
	CMPQ TMP, $128; \
	JAE  loop128; \
	LEAQ -128(FROM)(TMP*1), FROM; \
	LEAQ -128(TO)(TMP*1), TO; \
	MOVL $128, TMP; \
	JMP  loop128; \
wide: \
	VZEROUPPER; \
	DONE; \
loop64: \
	MOVUPS (FROM), X0; \
	MOVUPS 16(FROM), X1; \
	MOVUPS 32(FROM), X2; \
	MOVUPS 48(FROM), X3; \
	MOVUPS X0, (TO); \
	MOVUPS X1, 16(TO); \
	MOVUPS X2, 32(TO); \
	MOVUPS X3, 48(TO); \
	SUBQ $64, TMP; \
	JEQ  narrow; \
	ADDQ $64, FROM; \
	ADDQ $64, TO; \
	CMPQ TMP, $64; \
	JAE  loop64; \
	LEAQ -64(FROM)(TMP*1), FROM; \
	LEAQ -64(TO)(TMP*1), TO; \
	MOVL $64, TMP; \
	JMP  loop64; \
narrow: \
	DONE

// loadR(h, dst, n, typ) is load with its arguments in H, P, N, DI and SI:
//
//	s := h.seq
//	if s&open == 0 { goto loadSlow }
//	copy n bytes from h's T to *dst
//	if (h.seq^s)&^owned != 0 { goto loadSlow }
//
// Its first look pairs with the last step of store and publish, its last look
// with their first.
TEXT ·loadR(SB), NOSPLIT|NOFRAME, $0-0
	MOVQ SEQ, S
	LEAQ head__size(H), FROM
	MOVQ P, TO
	TESTB $const_open, S
	JEQ  slow
#define LOADED \
	XORQ SEQ, S; \
	TESTQ $~const_owned, S; \
	JNE  slow; \
	RET
	COPY(MOVEOUT, LOADED)
slow:
	JUMP(·loadSlowGo)

// storeR(h, src, n, typ) is store with its arguments in H, P, N, DI and SI:
//
//	s := h.seq
//	if s&states != open || !cas(&h.seq, s, s-open+owned) { goto storeSlow }
//	copy n bytes from *src to h's T
//	h.seq = s + oneWrite
//	if h.waiting != 0 { goto storeRest }
//
// The compare-and-swap pairs with the end of load, the store of seq with its
// start. The look at waiting is a hint, which needs no order.
TEXT ·storeR(SB), NOSPLIT|NOFRAME, $0-0
	MOVQ SEQ, TMP
	MOVL TMP, TMP2
	ANDL $const_states, TMP2
	CMPL TMP2, $const_open
	JNE  slow
	MOVQ P, FROM
	MOVQ H, BX // AX is what CMPXCHGQ compares with.
	MOVQ TMP, AX
	LEAQ (const_owned-const_open)(TMP), S
	LOCK
	CMPXCHGQ S, head_seq(BX)
	JNE  lost
	LEAQ head__size(BX), TO
	ADDQ $(const_oneWrite-const_owned+const_open), S
#define STORED \
	MOVQ S, head_seq(BX); \
	CMPL head_waiting(BX), $0; \
	JNE  rest; \
	RET
	COPY(MOVEIN, STORED)
rest:
	JUMP(·storeRestGo)
lost:
	MOVQ BX, H
	MOVQ FROM, P
slow:
	JUMP(·storeSlowGo)

// func publish(h *head, src unsafe.Pointer, n uintptr)
//
//	s := h.seq
//	h.seq = s - open
//	copy n bytes from *src to h's T
//	h.seq = s + oneWrite
//
// The first store of seq pairs with the end of load, the last one with its start.
TEXT ·publish(SB), NOSPLIT, $0-24
	MOVQ h+0(FP), H
	MOVQ src+8(FP), FROM
	MOVQ n+16(FP), N
	LEAQ head__size(H), TO
	MOVQ SEQ, S
	SUBQ $const_open, S
	MOVQ S, SEQ
	ADDQ $(const_oneWrite+const_open), S
#define PUBLISHED \
	MOVQ S, SEQ; \
	RET
	COPY(MOVEIN, PUBLISHED)

#define LATCHSEQ latch_seq(H)

// loadLatchR(h, dst, n, stride, typ) is loadLatch with its arguments in H, P, N,
// DI, SI and R8:
//
//	s := h.seq
//	if s == 0 { goto loadLatchSlow }
//	copy n bytes from the half with s's version to *dst
//	if h.seq - s&^writing >= oneWrite+writing { goto loadLatchSlow }
//
// Its first look pairs with the last step of writeLatch, its last look with the
// first.
TEXT ·loadLatchR(SB), NOSPLIT|NOFRAME, $0-0
	MOVQ LATCHSEQ, S
	TESTQ S, S
	JEQ  slow
	LEAQ latch__size(H), FROM
	LEAQ (FROM)(DI*1), TMP
	MOVQ P, TO
	TESTB $const_oneWrite, S
	CMOVQNE TMP, FROM
	ANDQ $~const_writing, S
#define LATCHLOADED \
	MOVQ LATCHSEQ, TMP; \
	SUBQ S, TMP; \
	CMPQ TMP, $(const_oneWrite+const_writing); \
	JAE  slow; \
	RET
	COPY(MOVEOUT, LATCHLOADED)
slow:
	JUMP(·loadLatchSlowGo)

// func writeLatch(h *latch, src unsafe.Pointer, n, stride uintptr)
//
//	s := h.seq
//	h.seq = s + writing
//	copy n bytes from *src to the half without s's version
//	h.seq = s + oneWrite
//
// The first store of seq pairs with the end of loadLatch, the last one with its
// start.
TEXT ·writeLatch(SB), NOSPLIT, $0-32
	MOVQ h+0(FP), H
	MOVQ src+8(FP), FROM
	MOVQ n+16(FP), N
	LEAQ latch__size(H), TO
	MOVQ stride+24(FP), TMP
	ADDQ TO, TMP
	MOVQ LATCHSEQ, S
	ADDQ $const_writing, S
	MOVQ S, LATCHSEQ
	TESTB $const_oneWrite, S
	CMOVQEQ TMP, TO
	ADDQ $(const_oneWrite-const_writing), S
#define LATCHWRITTEN \
	MOVQ S, LATCHSEQ; \
	RET
	COPY(MOVEIN, LATCHWRITTEN)

// checkR(a, b, c, d, e, f) returns a + 3*(b + 3*(c + 3*(d + 3*(e + 3*f))))
// if it finds its arguments where the routines above expect theirs.
TEXT ·checkR(SB), NOSPLIT|NOFRAME, $0-0
	LEAQ (R8)(R8*2), R8
	ADDQ SI, R8
	LEAQ (R8)(R8*2), R8
	ADDQ DI, R8
	LEAQ (R8)(R8*2), R8
	ADDQ CX, R8
	LEAQ (R8)(R8*2), R8
	ADDQ BX, R8
	LEAQ (R8)(R8*2), R8
	ADDQ R8, AX
	RET

// The routines' addresses, to be called as funcs.

DATA ·loadCode(SB)/8, $·loadR(SB)
GLOBL ·loadCode(SB), NOPTR|RODATA, $8
DATA ·storeCode(SB)/8, $·storeR(SB)
GLOBL ·storeCode(SB), NOPTR|RODATA, $8
DATA ·loadLatchCode(SB)/8, $·loadLatchR(SB)
GLOBL ·loadLatchCode(SB), NOPTR|RODATA, $8
DATA ·checkCode(SB)/8, $·checkR(SB)
GLOBL ·checkCode(SB), NOPTR|RODATA, $8
