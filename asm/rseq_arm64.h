// What the restartable sequences of rseq_arm64.s and ops_arm64.s share.

// LOAD_AREA puts the address of the thread's area into R0 and goes to none if
// the thread has none. clone copies TPIDR_EL0, so an area of ours belongs to
// the thread only if it names the thread's m (48(g) is g.m, 32(R0) is area.m).
// It uses R1 and R2.
#define LOAD_AREA(none) \
	MRS  TPIDR_EL0, R0 \
	MOVD ·areaDelta(SB), R1 \
	ADD  R1, R0 \
	CBZ  R0, none \
	MOVD ·foreign(SB), R1 \
	CBNZ R1, 5(PC) \
	MOVD 48(g), R1 \
	MOVD 32(R0), R2 \
	EOR  R1, R2, R1 \
	CBNZ R1, none

// SIGNATURE stands before the abort handler: BRK #0x45e0 (rseqSignature).
#define SIGNATURE WORD $0xd428bc00

// RETRIES bounds the aborts in a row before the slow path is taken, so that
// a single-stepping debugger or a storm of signals cannot stop an update.
#define RETRIES $64

// LOAD_THREAD puts the number of columns into R7, the thread's area into R0, the
// number of tries into R8 and the descriptor into R5, or goes to cannot. It uses
// R1 and R2.
//
// rseqColumns comes first: while it is 0 the thread's area may be nobody's, and
// not even the descriptor's address may be stored. LDAR pairs with the atomic
// store in setRSEQColumns, which follows the stores to areaDelta and foreign.
#define LOAD_THREAD(cs, cannot) \
	MOVD  $·rseqColumns(SB), R7 \
	LDARW (R7), R7 \
	CBZW  R7, cannot \
	LOAD_AREA(cannot) \
	MOVD  RETRIES, R8 \
	MOVD  $cs(SB), R5

// LOAD_BLOCK is LOAD_THREAD that also puts b into R12 and i*8 into R3.
#define LOAD_BLOCK(cs, cannot) \
	LOAD_THREAD(cs, cannot) \
	MOVD b+0(FP), R12 \
	MOVD i+8(FP), R3 \
	LSL  $3, R3

// ARM begins a sequence: what follows restarts at the abort handler. It leaves
// the CPU number in R11 and the address of word i in its column in R6, or goes
// to cannot. The load of b.base belongs to the sequence, and is an acquire: pairs
// with Alloc, Divert, Gate.Open and Gate.Shut. Every sequence ends with STLR R10, (R6).
#define ARM(cannot) \
	MOVD  R5, 8(R0) \
	MOVWU 4(R0), R11 \
	CMPW  R7, R11 \
	BHS   cannot \
	LDAR  (R12), R6 \
	CBZ   R6, cannot \
	ADD   R3, R6 \
	ADD   R11<<16, R6

// AGAIN is the abort handler.
#define AGAIN(rearm) \
	SIGNATURE \
	SUBW  $1, R8 \
	CBNZW R8, rearm
