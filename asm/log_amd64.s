//go:build linux && !android && gc && !purego && !race && !go1.28

#include "go_asm.h"
#include "textflag.h"
#include "rseq_amd64.h"

// The descriptor, filled at start-up (findSequences), and the code it describes.
GLOBL ·logCS(SB), NOPTR, $32
DATA ·logCode(SB)/8, $·seqLogWrite(SB)
GLOBL ·logCode(SB), NOPTR|RODATA, $8

// WORD stores v in the buffer's word at R9 and steps on. It uses DX.
#define WORD(v) \
	MOVQ R9, DX \
	ANDQ R15, DX \
	MOVQ v, (R12)(DX*8) \
	INCQ R9

// LOG_GO goes on in a Go function with the same arguments, as GO does. Of payload, it may
// have no more than its length.
#define LOG_GO(f) \
	MOVQ SI, AX \
	MOVQ R11, CX \
	MOVQ DI, SI \
	MOVQ f(SB), DX \
	MOVQ (DX), R13 \
	JMP  R13

// seqLogWrite is logWrite(l *Log, event uint32, payload []byte) bool, called by registers:
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
// There is one for programs with cgo and without, which begin at the number that was kept as
// in LOAD_SHARED and LOAD_OURS: most of its time goes into RDTSC, beside which little counts.
// RDTSC and the copying need the registers that the others keep what they know of the thread
// in; who is aborted looks that up again.
//
// SI is l, BX event, R11 and DI the payload and its length. In the sequence: AX the area,
// R9 areaDelta, R12 where the number is kept if that is not 0; later CX the column's words,
// R12 its buffer, R15 the mask, R9 the position.
TEXT ·seqLogWrite(SB), NOSPLIT|NOFRAME, $0-0
	MOVQ AX, SI
	MOVQ CX, R11
	CMPQ DI, $const_logLongest
	JHI  slow
	MOVL RETRIES, R8

thread:
	MOVL ·rseqColumns(SB), R10 // first: see LOAD_THREAD
	TESTL R10, R10
	JEQ  slow
	MOVQ 0(FS), AX
	MOVQ ·areaDelta(SB), R9
	TESTQ R9, R9
	JNE  foreign
	MOVL 8(FS), CX

area:
	TESTQ AX, AX
	JEQ  slow
	LEAQ ·logCS(SB), DX

rearm:
	CMPQ DX, 8(AX)
	JNE  arm
	CMPL CX, 4(AX)
	JNE  other
	MOVQ (SI), R13
	TESTQ R13, R13
	JEQ  slow
	MOVQ Log_buffers(SI), R12
	TESTQ R12, R12
	JEQ  slow
	MOVQ Log_stride(SI), AX
	IMULQ CX, AX
	ADDQ AX, R12
	SHLQ $16, CX
	ADDQ R13, CX
	MOVQ Log_mask(SI), R15
	MOVQ (const_logHead*8)(CX), R9
	LEAQ 23(DI), R13
	SHRQ $3, R13
	LEAQ -1(R9)(R13*1), R13 // compared with the mask, which is one less than the size
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
	MOVQ BX, AX
	SHLQ $32, AX
	ORQ  DI, AX
	WORD(AX)
	MOVQ R11, R13
	MOVQ DI, AX
	SUBQ $8, AX
	JCS  rest

copy:
	MOVQ (R13), R10
	WORD(R10)
	ADDQ $8, R13
	SUBQ $8, AX
	JCC  copy

rest:
	ADDQ $8, AX // bytes that are left
	JEQ  commit
	XORL R10, R10

bytes:
	SHLQ $8, R10
	MOVBLZX -1(R13)(AX*1), DX
	ORQ  DX, R10
	DECQ AX
	JNE  bytes
	WORD(R10)

commit:
	MOVQ R9, (CX)
	MOVL $1, AX
	RET
	SIGNATURE
	JMP  thread

arm:
	MOVQ DX, 8(AX)
	DECL R8
	JNE  rearm

slow:
	LOG_GO(·logSlowGo)

full:
	LOG_GO(·logFullGo)

foreign:
	ADDQ R9, AX
	MOVQ R14, CX
	SHRQ $6, CX
	ANDL $(const_guessCount-1), CX
	LEAQ ·guesses(SB), R12
	LEAQ (R12)(CX*8), R12
	MOVL (R12), CX
	JMP  area

other:
	MOVL 4(AX), CX
	CMPL CX, R10
	JCC  slow
	TESTQ R9, R9
	JNE  table
	MOVL CX, 8(FS)
	JMP  rearm

table:
	CMPL R8, RETRIES
	JEQ  rearm
	MOVL CX, (R12)
	JMP  rearm
