//go:build linux && !android && gc && !purego && !race && !go1.28

#include "go_asm.h"
#include "textflag.h"
#include "rseq_amd64.h"

// The descriptor, filled at start-up (findSequences), and the code it describes.
GLOBL ·logCS(SB), NOPTR, $32
DATA ·logCode(SB)/8, $·logWrite(SB)
GLOBL ·logCode(SB), NOPTR|RODATA, $8

// WORD stores v in the buffer's word at R9 and steps on. It uses BX.
#define WORD(v) \
	MOVQ R9, BX \
	ANDQ R15, BX \
	MOVQ v, (DI)(BX*8) \
	INCQ R9

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
// No fence is needed on TSO: the record's stores are in order with the commit,
// which is the last; and they are not passed by the earlier load of the tail, so
// they come after the reader's loads, which its store of the tail did not pass.
// What an aborted sequence leaves in the buffer, the next one writes over.
//
// R11 is the payload's length, R12 the record's words, R14 the area. In the
// sequence: CX the column's words, DI its buffer, R15 the mask, R9 the position.
TEXT ·logWrite(SB), NOSPLIT|NOFRAME, $0-41
	LOAD_THREAD(·logCS, slow)
	MOVQ l+0(FP), SI
	MOVQ payload_len+24(FP), R11
	CMPQ R11, $const_logLongest
	JHI  slow
	LEAQ 23(R11), R12
	SHRQ $3, R12
	MOVQ AX, R14
	XORL BX, BX

rearm:
	ARM(slow)
	MOVQ Log_buffers(SI), DI
	TESTQ DI, DI
	JEQ  slow
	MOVQ CX, AX
	IMULQ Log_stride(SI), AX
	ADDQ AX, DI
	SHLQ $16, CX
	ADDQ R13, CX
	MOVQ Log_mask(SI), R15
	MOVQ (const_logHead*8)(CX), R9
	LEAQ -1(R9)(R12*1), R13 // compared with the mask, which is one less than the size
	MOVQ R13, AX
	SUBQ (const_logSeen*8)(CX), AX
	CMPQ AX, R15
	JLS  room
	MOVQ (const_logTail*8)(CX), AX
	MOVQ AX, (const_logSeen*8)(CX)
	SUBQ AX, R13
	CMPQ R13, R15
	JHI  full

room:
	RDTSC
	SHLQ $32, DX
	ORQ  DX, AX
	WORD(AX)
	MOVL event+8(FP), AX
	SHLQ $32, AX
	ORQ  R11, AX
	WORD(AX)
	MOVQ payload_base+16(FP), DX
	MOVQ R11, AX
	SUBQ $8, AX
	JCS  rest

copy:
	MOVQ (DX), R13
	WORD(R13)
	ADDQ $8, DX
	SUBQ $8, AX
	JCC  copy

rest:
	ADDQ $8, AX // bytes that are left
	JEQ  commit
	XORL R13, R13

bytes:
	SHLQ $8, R13
	MOVBLZX -1(DX)(AX*1), BX
	ORQ  BX, R13
	DECQ AX
	JNE  bytes
	WORD(R13)

commit:
	MOVQ R9, (CX)
	MOVB $1, ret+40(FP)
	RET
	SIGNATURE
	MOVQ R14, AX
	LEAQ ·logCS(SB), DX
	XORL BX, BX
	REARM(rearm)

slow:
	JMP ·logSlow(SB)

full:
	JMP ·logFull(SB)
