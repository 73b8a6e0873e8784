//go:build linux && !android && gc && !purego && !race && !go1.28

#include "go_asm.h"
#include "textflag.h"
#include "rseq_arm64.h"

// The descriptor, filled at start-up (findSequences), and the code it describes.
GLOBL ·logCS(SB), NOPTR, $32
DATA ·logCode(SB)/8, $·logWrite(SB)
GLOBL ·logCode(SB), NOPTR|RODATA, $8

// WORD_TO stores v in the buffer's word at R10 and steps on. It uses R2.
#define WORD_TO(v) \
	AND  R13, R10, R2 \
	MOVD v, (R9)(R2<<3) \
	ADD  $1, R10

// func logWrite(l *Log, event uint32, payload []byte) bool
//
//	w, b := area.cpu's words of l.ends, area.cpu's buffer
//	at, end := w[head], w[head] + words of the record
//	if end - w[seen] > size {
//		w[seen] = w[tail]
//		if end - w[seen] > size { jump to logFull }
//	}
//	b[at], b[at+1] = cycles, event<<32 | len(payload)
//	copy payload to b[at+2]...
//	w[head] = end
//
// The commit is a release: pairs with Log.End. The load of the tail is an
// acquire: pairs with Log.Free. That of what was seen need not be: whoever stored
// it had acquired it, on this CPU, and the kernel passes a full barrier between two
// threads on one. What an aborted sequence leaves in the buffer, the next one
// writes over.
//
// R4 is the payload's length, R14 the record's words, R12 l. In the sequence: R6
// the column's words, R9 its buffer, R13 the mask, R10 the position.
TEXT ·logWrite(SB), NOSPLIT|NOFRAME, $0-41
	LOAD_THREAD(·logCS, slow)
	MOVD l+0(FP), R12
	MOVD payload_len+24(FP), R4
	MOVD $const_logLongest, R1
	CMP  R1, R4
	BHI  slow
	ADD  $23, R4, R14
	LSR  $3, R14
	MOVD ZR, R3

rearm:
	ARM(slow)
	MOVD Log_buffers(R12), R9 // the loads through it depend on it
	CBZ  R9, slow
	MOVD Log_stride(R12), R1
	MADD R11, R9, R1, R9
	MOVD Log_mask(R12), R13
	LDAR (R6), R10
	ADD  R14, R10, R15
	SUB  $1, R15 // compared with the mask, which is one less than the size
	MOVD (const_logSeen*8)(R6), R1
	SUB  R1, R15, R1
	CMP  R13, R1
	BLS  room
	ADD  $(const_logTail*8), R6, R1
	LDAR (R1), R1
	MOVD R1, (const_logSeen*8)(R6)
	SUB  R1, R15, R1
	CMP  R13, R1
	BHI  full

room:
	MRS  CNTVCT_EL0, R1
	WORD_TO(R1)
	MOVWU event+8(FP), R1
	LSL  $32, R1
	ORR  R4, R1
	WORD_TO(R1)
	MOVD payload_base+16(FP), R1
	SUBS $8, R4, R15
	BLO  rest

copy:
	MOVD.P 8(R1), R11
	WORD_TO(R11)
	SUBS $8, R15
	BHS  copy

rest:
	ADDS $8, R15 // bytes that are left
	BEQ  commit
	ADD  R15, R1
	MOVD ZR, R11

bytes:
	MOVBU.W -1(R1), R2
	ORR  R11<<8, R2, R11
	SUBS $1, R15
	BNE  bytes
	WORD_TO(R11)

commit:
	MOVD $1, R1
	STLR R10, (R6)
	MOVB R1, ret+40(FP)
	RET
	AGAIN(rearm)

slow:
	JMP ·logSlow(SB)

full:
	JMP ·logFull(SB)
