//go:build (amd64 || arm64) && gc && !purego && !race && !go1.28

// This file imports unsafe to call assembly as Go calls Go, with arguments in
// registers. A call by name goes through a wrapper that puts them on the stack, from
// where the assembly has to load them; a func value that points to a word with the
// address of the code does without. What that gains is in docs/seqlock.md.
//
// It relies on facts of Go 1.26 and 1.27, which it was tried with: on func values being
// that; on the registers for words, in the order of the arguments, an interface being
// two, which are AX BX CX DI SI R8 on amd64 and R0 to R5 on arm64, and which checkCalls
// checks; on the stack pointer, the frame pointer, g and the zero in X15 being all that a
// callee has to keep; on DX or R26 pointing to the word that a func is called by, which
// is how the assembly jumps to a slow path; and on the caller leaving room on its stack
// for the arguments of such a call. A newer Go gets the portable routines until this
// file has been tried with it.
//
// Pointers are passed as uintptr, since the compiler would think that they escape by a
// func that it cannot look into, and move each T to the heap. A slow path takes them as
// pointers again. In between, nothing frees or moves what they point to. The runtime
// cannot stop a goroutine in assembly; and if it stops one on the way there, between two
// instructions of Go, it takes every word that looks like a pointer for one, and leaves
// the stack where it is.

package seqlock

import "unsafe"

// The routines of words_unsafe.go and latch_unsafe.go in assembly, where each
// call is one instruction sequence that the scheduler cannot preempt, and copies
// 16 or 32 bytes at a time. load, store and loadLatch jump to loadSlow, storeSlow
// and loadLatchSlow where the portable ones call them. They can go when the compiler
// copies atomic words as fast.

func load(h *head, dst unsafe.Pointer, n uintptr, typ any)  { call(loadWords, h, dst, n, typ) }
func store(h *head, src unsafe.Pointer, n uintptr, typ any) { call(storeWords, h, src, n, typ) }

func loadLatch(h *latch, dst unsafe.Pointer, n, stride uintptr, typ any) {
	callLatch(loadLatchWords, h, dst, n, stride, typ)
}

//go:noescape
func publish(h *head, src unsafe.Pointer, n uintptr)

//go:noescape
func writeLatch(h *latch, src unsafe.Pointer, n, stride uintptr)

// call and callLatch call f. That f is a parameter makes the call cost less of the budget
// for inlining, which StoreFrom would else be over by 1.

func call(f wordsFunc, h *head, p unsafe.Pointer, n uintptr, typ any) {
	f(uintptr(unsafe.Pointer(h)), uintptr(p), n, typ)
}

func callLatch(f latchFunc, h *latch, p unsafe.Pointer, n, stride uintptr, typ any) {
	f(uintptr(unsafe.Pointer(h)), uintptr(p), n, stride, typ)
}

type (
	wordsFunc = func(h, p, n uintptr, typ any)
	latchFunc = func(h, p, n, stride uintptr, typ any)
)

// calls reports whether arguments are passed as the assembly expects. Where they are
// not, it is not used.
var calls = checkCalls(byRegisters[func(a, b, c, d, e, f uintptr) uintptr](&checkCode))

var (
	loadWords      = choose[wordsFunc](calls, &loadCode, loadGeneric)
	storeWords     = choose[wordsFunc](calls, &storeCode, storeGeneric)
	loadLatchWords = choose[latchFunc](calls, &loadLatchCode, loadLatchGeneric)
)

// choose returns the code as a func, or else generic, whose type is F with pointers.
func choose[F, G any](calls bool, code *uintptr, generic G) F {
	if calls {
		return byRegisters[F](code)
	}
	return *(*F)(unsafe.Pointer(&generic))
}

// byRegisters returns the function whose code's address is in the word at code.
func byRegisters[F any](code *uintptr) F { return *(*F)(unsafe.Pointer(&code)) }

func checkCalls(check func(a, b, c, d, e, f uintptr) uintptr) bool {
	const a, b, c, d, e, f = 1 << 50, 1 << 40, 1 << 30, 1 << 20, 1 << 10, 1
	return check(a, b, c, d, e, f) == a+3*(b+3*(c+3*(d+3*(e+3*f))))
}

// Defined in the assembly: the addresses of loadR, storeR, loadLatchR and checkR.
var loadCode, storeCode, loadLatchCode, checkCode uintptr

// Code that is not to be called by these names.
//
//lint:file-ignore U1000 the assembly uses what seems unused here
func loadR()
func storeR()
func loadLatchR()
func checkR()

// Where it jumps to.
var (
	loadSlowGo      = loadSlow
	storeSlowGo     = storeSlow
	storeRestGo     = storeRest
	loadLatchSlowGo = loadLatchSlow
)
