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
// cannot, or to AGAIN's arm if the sequence is not armed. The load of b.base belongs
// to the sequence: pairs with Gate.Shut.
//
// A thread that was not interrupted since it last ran this sequence finds the
// descriptor where it left it. The comparison is the first instruction of the
// sequence: what interrupts before it takes the descriptor away, or aborts too.
#define ARM(cannot) \
	CMPQ DX, 8(AX) \
	JNE  arm \
	MOVL 4(AX), CX \
	CMPL CX, R10 \
	JCC  cannot \
	MOVQ (SI), R13 \
	TESTQ R13, R13 \
	JEQ  cannot \
	ADDQ BX, R13

// AGAIN is the abort handler. Behind it has to be what goes to where cannot does: it gets
// there after RETRIES.
#define AGAIN(rearm) \
	SIGNATURE \
	REARM(rearm)

// REARM arms the sequence, and begins it again.
#define REARM(rearm) \
arm: \
	MOVQ DX, 8(AX) \
	DECL R8 \
	JNE  rearm

// What follows is for what is called by registers (calls_amd64_unsafe.go), with b in
// AX and i in BX. The way to a word is a load shorter there: it starts at the number that
// was kept of the CPU of last time, and the number in the area is only compared
// with it. What is kept is always a number of a column. There are two places for it:
//
// FS:8, without cgo: m.tls[2], which is ours. AGAIN_OURS stores there where the thread
// has moved.
//
// An element of guesses for the goroutine, R14, where all of FS is libc's. Goroutines that
// share an element with another that runs elsewhere would take its line from each other if
// both stored to it each time; AGAIN_SHARED does after an interruption only.

// GO goes on in a Go function with the same arguments; f is the variable that has it. It
// undoes what LOAD_OURS and LOAD_SHARED do to b and i. The jump is by a register, as the
// assembler's -spectre=ret wants it.
#define GO(f) \
	MOVQ SI, AX \
	SARQ $3, BX \
	MOVQ f(SB), DX \
	MOVQ (DX), R13 \
	JMP  R13

// LOAD_OURS is LOAD_BLOCK that also puts the number that was kept into CX. That
// rseqColumns comes first pairs with setRSEQColumns, as in LOAD_THREAD.
#define LOAD_OURS(cs, cannot) \
	MOVQ AX, SI \
	SHLQ $3, BX \
	MOVL ·rseqColumns(SB), R10 \
	TESTL R10, R10 \
	JEQ  cannot \
	MOVQ 0(FS), AX \
	TESTQ AX, AX \
	JEQ  cannot \
	MOVL 8(FS), CX \
	MOVL RETRIES, R8 \
	LEAQ cs(SB), DX

// KEPT_AT puts the place of the goroutine's number into place. It uses R9.
#define KEPT_AT(place) \
	MOVQ R14, R9 \
	SHRQ $6, R9 \
	ANDL $(const_guessCount-1), R9 \
	LEAQ ·guesses(SB), place \
	LEAQ (place)(R9*8), place

// LOAD_SHARED is LOAD_OURS that also puts the place of the number into R12. It uses R9.
#define LOAD_SHARED(cs, cannot) \
	MOVQ AX, SI \
	SHLQ $3, BX \
	KEPT_AT(R12) \
	LOAD_THREAD(cs, cannot) \
	MOVL (R12), CX

// ARM_KEPT is ARM, which goes to other if the number that was kept is not the thread's.
// The way back from there is not counted: to get there twice a thread has to be moved
// in between, which takes it through arm.
#define ARM_KEPT(cannot) \
	CMPQ DX, 8(AX) \
	JNE  arm \
	CMPL CX, 4(AX) \
	JNE  other \
	MOVQ (SI), R13 \
	TESTQ R13, R13 \
	JEQ  cannot \
	ADDQ BX, R13

// AGAIN_OURS is AGAIN.
#define AGAIN_OURS(rearm, cannot) \
other: \
	MOVL 4(AX), CX \
	CMPL CX, R10 \
	JCC  cannot \
	MOVL CX, 8(FS) \
	JMP  rearm \
	SIGNATURE \
	MOVL 8(FS), CX \
	REARM(rearm)

// AGAIN_SHARED is AGAIN.
#define AGAIN_SHARED(rearm, cannot) \
other: \
	MOVL 4(AX), CX \
	CMPL CX, R10 \
	JCC  cannot \
	CMPL R8, RETRIES \
	JEQ  rearm \
	MOVL CX, (R12) \
	JMP  rearm \
	SIGNATURE \
	MOVL (R12), CX \
	REARM(rearm)
