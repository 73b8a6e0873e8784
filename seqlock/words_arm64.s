//go:build gc && !purego && !race && !go1.28

#include "textflag.h"
#include "go_asm.h"

// arm64 lets a load pass a load and a store pass a store, so each step that
// the protocol orders has its instruction here:
//
//	loadR, loadLatchR             LDAR seq     before the loads of T
//	                              DMB ISHLD    loads of T before the load of seq
//	storeR, publish, writeLatch   DMB ISHST    store of seq before the stores of T
//	                              STLR seq     after the stores of T
//
// DMB ISHST is needed with and without the atomics of ARMv8.1: neither STXR
// nor CASAL keeps a later store from passing it.
//
// loadR, storeR and loadLatchR are called with arguments in registers, as
// words_asm_unsafe.go says. They leave these alone, since a slow path wants them
// there too.

#define DMB_ISHLD DMB $0x9
#define DMB_ISHST DMB $0xa

#define H R0
#define P R1
#define N R2
#define FROM R6
#define TO R7
#define SEQ R8
#define S R9
#define LEFT R10
#define FROMEND R11
#define TOEND R12
#define TMP R13
#define TMP2 R14

// JUMP calls a Go func with the arguments that are in registers, for good.
#define JUMP(func) \
	MOVD func(SB), R26; \
	MOVD (R26), TMP; \
	JMP  (TMP)

// COPY copies N bytes from FROM to TO, the last ones twice where that saves a
// branch. Changes FROM, TO, the names from LEFT on, and F0-F3.
#define COPY \
	MOVD N, LEFT; \
	ADD  N, FROM, FROMEND; \
	ADD  N, TO, TOEND; \
	CMP  $16, N; \
	BLO  under16; \
	CMP  $32, N; \
	BHI  over32; \
	FMOVQ (FROM), F0; \
	FMOVQ -16(FROMEND), F1; \
	FMOVQ F0, (TO); \
	FMOVQ F1, -16(TOEND); \
	B    copied; \
loop64: \
	FLDPQ (FROM), (F0, F1); \
	FLDPQ 32(FROM), (F2, F3); \
	FSTPQ (F0, F1), (TO); \
	FSTPQ (F2, F3), 32(TO); \
	ADD  $64, FROM; \
	ADD  $64, TO; \
	SUB  $64, LEFT; \
over32: \
	CMP  $64, LEFT; \
	BHI  loop64; \
	CMP  $32, LEFT; \
	BLS  last32; \
	FLDPQ (FROM), (F0, F1); \
	FSTPQ (F0, F1), (TO); \
last32: \
	FLDPQ -32(FROMEND), (F2, F3); \
	FSTPQ (F2, F3), -32(TOEND); \
	B    copied; \
under16: \
	TBZ  $3, N, under8; \
	MOVD (FROM), TMP; \
	MOVD -8(FROMEND), TMP2; \
	MOVD TMP, (TO); \
	MOVD TMP2, -8(TOEND); \
	B    copied; \
under8: \
	TBZ  $2, N, under4; \
	MOVWU (FROM), TMP; \
	MOVWU -4(FROMEND), TMP2; \
	MOVW TMP, (TO); \
	MOVW TMP2, -4(TOEND); \
	B    copied; \
under4: \
	CBZ  N, copied; \
	MOVBU (FROM), TMP; \
	MOVB TMP, (TO); \
	TBZ  $1, N, copied; \
	MOVHU -2(FROMEND), TMP2; \
	MOVH TMP2, -2(TOEND); \
copied:

// loadR(h, dst, n, typ) is load with its arguments in H, P, N, R3 and R4:
//
//	s := h.seq
//	if s&open == 0 { goto loadSlow }
//	copy n bytes from h's T to *dst
//	if (h.seq^s)&^owned != 0 { goto loadSlow }
TEXT ·loadR(SB), NOSPLIT|NOFRAME, $0-0
	ADD  $head_seq, H, SEQ
	ADD  $head__size, H, FROM
	MOVD P, TO
	LDAR (SEQ), S // Pairs with the STLR in store and publish.
	TBZ  $0, S, slow // open
	COPY
	DMB_ISHLD // Pairs with the DMB in store and publish.
	MOVD (SEQ), TMP
	EOR  S, TMP
	TST  $~const_owned, TMP
	BNE  slow
	RET
slow:
	JUMP(·loadSlowGo)

// storeR(h, src, n, typ) is store with its arguments in H, P, N, R3 and R4:
//
//	s := h.seq
//	if s&states != open || !cas(&h.seq, s, s-open+owned) { goto storeSlow }
//	copy n bytes from *src to h's T
//	h.seq = s + oneWrite
//	if h.waiting != 0 { goto storeRest }
TEXT ·storeR(SB), NOSPLIT|NOFRAME, $0-0
	ADD  $head_seq, H, SEQ
	ADD  $head__size, H, TO
	MOVD P, FROM
again:
	LDAXR (SEQ), S // Pairs with the last writer's STLR, and disown.
	AND  $const_states, S, TMP
	CMP  $const_open, TMP
	BNE  slow
	ADD  $(const_owned-const_open), S, TMP
	STXR TMP, (SEQ), TMP2
	CBNZ TMP2, again
	DMB_ISHST // Pairs with the DMB in load.
	COPY
	ADD  $const_oneWrite, S
	STLR S, (SEQ) // Pairs with the LDAR in load.
	MOVW head_waiting(H), TMP // A hint, which needs no order.
	CBNZW TMP, rest
	RET
rest:
	JUMP(·storeRestGo)
slow:
	JUMP(·storeSlowGo)

// func publish(h *head, src unsafe.Pointer, n uintptr)
//
//	s := h.seq
//	h.seq = s - open
//	copy n bytes from *src to h's T
//	h.seq = s + oneWrite
TEXT ·publish(SB), NOSPLIT, $0-24
	MOVD h+0(FP), H
	MOVD src+8(FP), FROM
	MOVD n+16(FP), N
	ADD  $head_seq, H, SEQ
	ADD  $head__size, H, TO
	MOVD (SEQ), S
	SUB  $const_open, S, TMP
	MOVD TMP, (SEQ)
	DMB_ISHST // Pairs with the DMB in load.
	COPY
	ADD  $const_oneWrite, S
	STLR S, (SEQ) // Pairs with the LDAR in load.
	RET

// loadLatchR(h, dst, n, stride, typ) is loadLatch with its arguments in H, P, N,
// R3, R4 and R5:
//
//	s := h.seq
//	if s == 0 { goto loadLatchSlow }
//	copy n bytes from the half with s's version to *dst
//	if h.seq - s&^writing >= oneWrite+writing { goto loadLatchSlow }
TEXT ·loadLatchR(SB), NOSPLIT|NOFRAME, $0-0
	ADD  $latch_seq, H, SEQ
	ADD  $latch__size, H, FROM
	ADD  R3, FROM, TMP
	MOVD P, TO
	LDAR (SEQ), S // Pairs with the STLR in writeLatch.
	CBZ  S, slow
	TST  $const_oneWrite, S
	CSEL EQ, FROM, TMP, FROM
	AND  $~const_writing, S
	COPY
	DMB_ISHLD // Pairs with the DMB in writeLatch.
	MOVD (SEQ), TMP
	SUB  S, TMP
	CMP  $(const_oneWrite+const_writing), TMP
	BHS  slow
	RET
slow:
	JUMP(·loadLatchSlowGo)

// func writeLatch(h *latch, src unsafe.Pointer, n, stride uintptr)
//
//	s := h.seq
//	h.seq = s + writing
//	copy n bytes from *src to the half without s's version
//	h.seq = s + oneWrite
TEXT ·writeLatch(SB), NOSPLIT, $0-32
	MOVD h+0(FP), H
	MOVD src+8(FP), FROM
	MOVD n+16(FP), N
	MOVD stride+24(FP), TMP
	ADD  $latch_seq, H, SEQ
	ADD  $latch__size, H, TO
	ADD  TO, TMP
	MOVD (SEQ), S
	TST  $const_oneWrite, S
	CSEL EQ, TMP, TO, TO
	ADD  $const_writing, S, TMP
	MOVD TMP, (SEQ)
	DMB_ISHST // Pairs with the DMB in loadLatch.
	COPY
	ADD  $const_oneWrite, S
	STLR S, (SEQ) // Pairs with the LDAR in loadLatch.
	RET

// checkR(a, b, c, d, e, f) returns a + 3*(b + 3*(c + 3*(d + 3*(e + 3*f))))
// if it finds its arguments where the routines above expect theirs.
TEXT ·checkR(SB), NOSPLIT|NOFRAME, $0-0
	ADD  R5<<1, R5, R5
	ADD  R4, R5
	ADD  R5<<1, R5, R5
	ADD  R3, R5
	ADD  R5<<1, R5, R5
	ADD  R2, R5
	ADD  R5<<1, R5, R5
	ADD  R1, R5
	ADD  R5<<1, R5, R5
	ADD  R5, R0
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
