// What the restartable sequences of rseq_amd64.s and ops_amd64.s share.

// LOAD_AREA puts the address of the thread's area into AX and sets ZF if the
// thread has none. FS:0 is ours without cgo, and under libc the thread pointer.
//
// The store of a sequence is at an address that comes from here through two loads.
// Some processors let no later load pass a store until its address is known, so
// each load less is the time of a load less: see docs/rseq.md.
#define LOAD_AREA \
	MOVQ 0(FS), AX \
	ADDQ ·areaDelta(SB), AX

// SIGNATURE ends the straight path and stands before the abort handler:
// UD1 with rseqSignature as its displacement.
#define SIGNATURE BYTE $0x0f; BYTE $0xb9; BYTE $0x3d; LONG $0x53053053

// RETRIES bounds the aborts in a row before the slow path is taken, so that
// a single-stepping debugger or a storm of signals cannot stop an update.
#define RETRIES $64

// LOAD_THREAD puts the number of columns into R10, the thread's area into AX, the
// number of tries into R8 and the descriptor into DX, or goes to cannot.
//
// rseqColumns comes first: while it is 0 the thread's area may be nobody's, and
// not even the descriptor's address may be stored. Pairs with setRSEQColumns,
// which follows the store to areaDelta (loads are in order on TSO).
#define LOAD_THREAD(cs, cannot) \
	MOVL ·rseqColumns(SB), R10 \
	TESTL R10, R10 \
	JEQ  cannot \
	LOAD_AREA \
	JEQ  cannot \
	MOVL RETRIES, R8 \
	LEAQ cs(SB), DX

// LOAD_BLOCK is LOAD_THREAD that also puts b into SI and i*8 into BX.
#define LOAD_BLOCK(cs, cannot) \
	LOAD_THREAD(cs, cannot) \
	MOVQ b+0(FP), SI \
	MOVQ i+8(FP), BX \
	SHLQ $3, BX

// ARM begins a sequence: what follows restarts at the abort handler. It leaves
// the CPU number in CX and the address of word i in column 0 in R13, or goes to
// cannot. The load of b.base belongs to the sequence: pairs with Gate.Shut.
#define ARM(cannot) \
	MOVQ DX, 8(AX) \
	MOVL 4(AX), CX \
	CMPL CX, R10 \
	JCC  cannot \
	MOVQ (SI), R13 \
	TESTQ R13, R13 \
	JEQ  cannot \
	ADDQ BX, R13

// AGAIN is the abort handler.
#define AGAIN(rearm) \
	SIGNATURE \
	DECL R8 \
	JNE  rearm
