// This file imports unsafe to see a T of a few words as these. It relies on the layout that
// value_unsafe.go names, and on nothing that depends on the Go version: what the compiler
// makes of it is checked by TestCompiled, with Go 1.26 and 1.27.

package seqlock

import (
	"sync/atomic"
	"unsafe"
)

// few is a T of a few words, in registers. A Load of one costs less without a call: it is
// made where it stands, of atomic loads, which on amd64 are plain instructions and on arm64
// LDAR, and keep their order without a fence.
type few struct{ a, b, c, d uint64 }

// isFew reports whether a T is loaded as one: it fits, and it can be stored by words. One
// of smaller fields is not, as arrays of them are copied 16 bytes at a time, for which the
// processor would have to wait until the words are stored. Where words have 32 bits atomic
// loads of 64 are calls. The compiler knows the answer.
func isFew[T any]() bool {
	var x T
	return unsafe.Sizeof(uintptr(0)) == 8 && unsafe.Sizeof(x) <= unsafe.Sizeof(few{}) &&
		(unsafe.Sizeof(x) <= 8 || unsafe.Alignof(x) == 8)
}

// inline calls f, a function literal, and in the end there is no call: for inlining, Load
// counts as a literal and the call of a parameter, and a literal that is called once may be
// ten times as large as other functions. All sizes count, as the compiler drops the wrong
// ones only later. No function is inlined into itself, not even through a literal, so Load
// and LoadTo, which has a Load in it, need one each.

func inline(f func())   { f() }
func inlineTo(f func()) { f() }

// copyFew is copyOut for the n bytes of a few. Of the last word it has all, too.
func copyFew(src unsafe.Pointer, n uintptr) (w few) {
	w.a = atomic.LoadUint64((*uint64)(src))
	if n > 8 {
		w.b = atomic.LoadUint64((*uint64)(unsafe.Add(src, 8)))
	}
	if n > 16 {
		w.c = atomic.LoadUint64((*uint64)(unsafe.Add(src, 16)))
	}
	if n > 24 {
		w.d = atomic.LoadUint64((*uint64)(unsafe.Add(src, 24)))
	}
	return w
}

// loadFewSlow is loadSlow for a few. Its result is in registers, as the fast path's is.
//
//go:noinline
func loadFewSlow(h *head, n uintptr, typ any) (w few) {
	loadSlow(h, unsafe.Pointer(&w), n, typ)
	return w
}
