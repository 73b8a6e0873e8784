//go:build gc && !purego && !race

#include "textflag.h"
#include "go_asm.h"

// arm64 lets a load pass a load and a store pass a store, so each step that
// the protocol orders has its instruction here:
//
//	load, loadLatch               LDAR seq     before the loads of T
//	                              DMB ISHLD    loads of T before the load of seq
//	store, publish, writeLatch    DMB ISHST    store of seq before the stores of T
//	                              STLR seq     after the stores of T
//
// DMB ISHST is needed with and without the atomics of ARMv8.1: neither STXR
// nor CASAL keeps a later store from passing it.

#define DMB_ISHLD DMB $0x9
#define DMB_ISHST DMB $0xa

#define H R0
#define FROM R1
#define TO R2
#define N R3
#define SEQ R4
#define S R5
#define FROMEND R6
#define TOEND R7
#define TMP R8
#define TMP2 R9

// COPY copies N bytes from FROM to TO, the last ones twice where that saves a
// branch. Changes all names above but H, SEQ and S, and F0-F3.
#define COPY \
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
	SUB  $64, N; \
over32: \
	CMP  $64, N; \
	BHI  loop64; \
	CMP  $32, N; \
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

// func load(h *head, dst any, n uintptr)
//
//	s := h.seq
//	if s&open == 0 { goto loadSlow }
//	copy n bytes from h's T to *dst
//	if (h.seq^s)&^owned != 0 { goto loadSlow }
TEXT ·load(SB), NOSPLIT, $0-32
	MOVD h+0(FP), H
	MOVD dst_data+16(FP), TO
	MOVD n+24(FP), N
	ADD  $head_seq, H, SEQ
	ADD  $head__size, H, FROM
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
	JMP  ·loadSlow(SB)

// func store(h *head, src any, n uintptr)
//
//	s := h.seq
//	if s&states != open || !cas(&h.seq, s, s-open+owned) { goto storeSlow }
//	copy n bytes from *src to h's T
//	h.seq = s + oneWrite
//	if h.waiting != 0 { goto storeRest }
TEXT ·store(SB), NOSPLIT, $0-32
	MOVD h+0(FP), H
	MOVD src_data+16(FP), FROM
	MOVD n+24(FP), N
	ADD  $head_seq, H, SEQ
	ADD  $head__size, H, TO
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
	MOVD h+0(FP), H
	MOVD src_data+16(FP), FROM
	MOVD n+24(FP), N
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

// func loadLatch(h *latch, dst any, n, stride uintptr)
//
//	s := h.seq
//	if s == 0 { goto loadLatchSlow }
//	copy n bytes from the half with s's version to *dst
//	if h.seq - s&^writing >= oneWrite+writing { goto loadLatchSlow }
TEXT ·loadLatch(SB), NOSPLIT, $0-40
	MOVD h+0(FP), H
	MOVD dst_data+16(FP), TO
	MOVD n+24(FP), N
	MOVD stride+32(FP), TMP
	ADD  $latch_seq, H, SEQ
	ADD  $latch__size, H, FROM
	ADD  FROM, TMP
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
	JMP  ·loadLatchSlow(SB)

// func writeLatch(h *latch, src any, n, stride uintptr)
//
//	s := h.seq
//	h.seq = s + writing
//	copy n bytes from *src to the half without s's version
//	h.seq = s + oneWrite
TEXT ·writeLatch(SB), NOSPLIT, $0-40
	MOVD h+0(FP), H
	MOVD src_data+16(FP), FROM
	MOVD n+24(FP), N
	MOVD stride+32(FP), TMP
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
