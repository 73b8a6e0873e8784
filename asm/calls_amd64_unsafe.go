//go:build linux && !android && amd64 && gc && !purego && !race && !go1.28

package asm

// This file makes func values of functions of the assembly. A call of a function of
// the assembly by its name goes through a wrapper that the linker makes, which has the
// arguments on the stack. A func value is called with the arguments in registers,
// without one; what that gains is in docs/rseq.md. The registers are those
// of the compiler's internal calling convention, AX, BX, CX, DI, SI for the first five words
// and the same for results; R14, X15, SP and BP are to be left as they are. A func
// value is a pointer to a word with the address of the code. A caller keeps room on its
// stack for the callee's arguments to be put there, and the Go function that the assembly
// may jump to does so where it grows the stack. Go 1.26, 1.27 tested.

import "unsafe"

// See rseq_asm.go. They are written by init only.
var (
	blockAdd     func(b *Block, i int, delta int64)
	gateAdd      func(b *Block, i int, delta int64)
	blockTryLock func(b *Block, i int) (l *Lock, slot int)
	claim        claimCall
	logByWords   logCall
)

type claimCall = func(c *Claims, v int64, other func(*Claims, int64) *int64) *int64

type logCall = func(l *Log, event uint32, payload uintptr, length, capacity int) bool

// logWrite is in rseq_asm.go. It calls logByWords, which goes on in logSlow or logFull with the slice that those three words
// are. As words they do not make payload escape; nor need they be anything else, for while the assembly runs no stack
// moves, and no collection ends.
func logWrite(l *Log, event uint32, payload []byte) bool {
	return logByWords(l, event, uintptr(unsafe.Pointer(unsafe.SliceData(payload))), len(payload), cap(payload))
}

// Where they jump to when a sequence cannot be used. Read by the assembly.
var (
	blockAddGo     = blockAddSlow
	gateAddGo      = gateAddSlow
	blockTryLockGo = blockTryLockSlow
	logSlowGo      = logSlow
	logFullGo      = logFull
)

// guesses has the CPU on which each goroutine ran a sequence last, in programs with
// cgo: see rseq_amd64.h. Goroutines are some 450 bytes apart, so few of a thousand share
// a cache line. They are loaded and stored without order, and pair with nothing: a sequence
// believes what it finds only where the area says the same.
var guesses [guessCount]uint64

const guessCount = 8192

// calls reports whether the compiler passes arguments and results as the assembly
// expects. Where it does not, there are no restartable sequences.
var calls = checkCalls(byRegisters[checkCall](&checkCode))

type checkCall = func(a, b, c, d, e int) (int, int, int)

func checkCalls(f checkCall) bool {
	x, y, z := f(1, 10, 100, 1000, 10000)
	return x == 21 && y == 410 && z == 38100
}

func init() {
	switch {
	case !calls:
		blockAdd, gateAdd, blockTryLock = blockAddGo, gateAddGo, blockTryLockGo
		claim = func(c *Claims, v int64, other func(*Claims, int64) *int64) *int64 { return other(c, v) }
		logByWords = *(*logCall)(unsafe.Pointer(&logSlowGo))
	case isCgo:
		blockAdd = byRegisters[func(*Block, int, int64)](&addCode)
		gateAdd = byRegisters[func(*Block, int, int64)](&gateCode)
		blockTryLock = byRegisters[func(*Block, int) (*Lock, int)](&lockCode)
		claim = byRegisters[claimCall](&claimCode)
		logByWords = byRegisters[logCall](&logCode)
	default:
		blockAdd = byRegisters[func(*Block, int, int64)](&addOursCode)
		gateAdd = byRegisters[func(*Block, int, int64)](&gateOursCode)
		blockTryLock = byRegisters[func(*Block, int) (*Lock, int)](&lockOursCode)
		claim = byRegisters[claimCall](&claimOursCode)
		logByWords = byRegisters[logCall](&logCode)
	}
}

// byRegisters returns the function whose code's address is in the word at code.
func byRegisters[F any](code **[sequenceLen]byte) F { return *(*F)(unsafe.Pointer(&code)) }

// Defined in the assembly.
var (
	addOursCS, gateOursCS, lockOursCS, claimOursCS                    csDescriptor
	addOursCode, gateOursCode, lockOursCode, claimOursCode, checkCode *[sequenceLen]byte
)

// sequencesOurs returns the sequences that only programs without cgo have.
func sequencesOurs() []sequence {
	if isCgo {
		return nil
	}
	return []sequence{
		{"seqAddOurs", addOursCode, &addOursCS, addCommit},
		{"seqGateAddOurs", gateOursCode, &gateOursCS, addCommit},
		{"seqTryLockOurs", lockOursCode, &lockOursCS, storeCommit},
		{"seqClaimOurs", claimOursCode, &claimOursCS, claimCommit},
	}
}

const nameAdd, nameGateAdd, nameTryLock, nameClaim, nameLogWrite = "seqAdd", "seqGateAdd", "seqTryLock", "seqClaim", "seqLogWrite"

// Code that is not to be called by these names.
//
//lint:file-ignore U1000 the assembly uses what seems unused here
func seqAdd()
func seqAddOurs()
func seqGateAdd()
func seqGateAddOurs()
func seqTryLock()
func seqTryLockOurs()
func seqClaim()
func seqClaimOurs()
func seqLogWrite()
func seqCheck()
