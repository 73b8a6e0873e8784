// This file holds the portable routines that copy a T in and out of a Value: the
// only ones in race and purego builds and on most processors, and what the
// assembly is tested against; and the slow paths of both. It needs unsafe to see
// a T as words. It relies on the layout that value_unsafe.go names. Every access
// to the shared T is an atomic one, so there is no race in the sense of the Go
// memory model.

package seqlock

import (
	"runtime"
	"sync/atomic"
	"unsafe"
)

// loadGeneric copies the n bytes of T from h's Value to *dst, which is a T. typ is
// a *T, of which only the type is looked at; here and in the others.
func loadGeneric(h *head, dst unsafe.Pointer, n uintptr, typ any) {
	if !tryLoad(h, dst, n) {
		loadSlow(h, dst, n, typ)
	}
}

// tryLoad makes one attempt at loadGeneric. It fails if a write is under way or
// T has not been checked, and then leaves anything in *dst.
func tryLoad(h *head, dst unsafe.Pointer, n uintptr) bool {
	s := h.seq.Load() // Pairs with the last step of store and publish.
	if s&open == 0 {
		return false
	}
	copyOut(dst, h.words(), n)
	// The loads in copyOut are atomic and so cannot pass this one.
	return (h.seq.Load()^s)&^owned == 0 // Pairs with the first step of store and publish.
}

// storeGeneric copies the n bytes of *src, which is a T, to h's Value.
func storeGeneric(h *head, src unsafe.Pointer, n uintptr, typ any) {
	s := h.seq.Load()
	// The stores in copyIn are atomic and so cannot pass this step, nor can the
	// last step pass them. Both pair with tryLoad and load.
	if s&states != open || !h.seq.CompareAndSwap(s, s-open+owned) {
		storeSlow(h, src, n, typ)
		return
	}
	copyIn(h.words(), src, n)
	h.seq.Store(s + oneWrite)
	if h.waiting.Load() != 0 {
		storeRest()
	}
}

// publishGeneric is storeGeneric for the owner of seq, who keeps it.
func publishGeneric(h *head, src unsafe.Pointer, n uintptr) {
	s := h.seq.Load()
	h.seq.Store(s - open) // These two, as in storeGeneric.
	copyIn(h.words(), src, n)
	h.seq.Store(s + oneWrite)
}

// storeRest is what store ends with if readers wait.
func storeRest() { runtime.Gosched() }

// storeSlow is store for a Value that is owned or new.
func storeSlow(h *head, src unsafe.Pointer, n uintptr, typ any) {
	h.use(typ)
	h.lock()
	publish(h, src, n)
	h.unlock()
	if h.waiting.Load() != 0 {
		storeRest()
	}
}

// loadSlow is load for a Value that is being written or new, or after a read
// that met a write.
func loadSlow(h *head, dst unsafe.Pointer, n uintptr, typ any) {
	h.use(typ)
	for i := 0; !tryLoad(h, dst, n); i++ {
		if i >= tries && h.own(h.seq.Load()) {
			tryLoad(h, dst, n) // Cannot fail: seq is ours, in state 11.
			h.disown()
			return
		}
		h.waiting.Add(1)
		relax(i)
		h.waiting.Add(-1)
	}
}

// words returns the address of T.
func (h *head) words() unsafe.Pointer {
	return unsafe.Add(unsafe.Pointer(h), unsafe.Sizeof(*h))
}

// A word is a uint64 at any address: the caller's T may be aligned to a byte.
type word = [8]byte

// copyOut copies n bytes from src, whose words are shared, to dst.
func copyOut(dst, src unsafe.Pointer, n uintptr) {
	i := uintptr(0)
	for ; i+8 <= n; i += 8 {
		w := atomic.LoadUint64((*uint64)(unsafe.Add(src, i)))
		*(*word)(unsafe.Add(dst, i)) = *(*word)(unsafe.Pointer(&w))
	}
	if i < n {
		w := atomic.LoadUint64((*uint64)(unsafe.Add(src, i)))
		copy(unsafe.Slice((*byte)(unsafe.Add(dst, i)), n-i), (*word)(unsafe.Pointer(&w))[:])
	}
}

// copyIn copies n bytes from src to dst, whose words are shared.
func copyIn(dst, src unsafe.Pointer, n uintptr) {
	i := uintptr(0)
	for ; i+8 <= n; i += 8 {
		var w uint64
		*(*word)(unsafe.Pointer(&w)) = *(*word)(unsafe.Add(src, i))
		atomic.StoreUint64((*uint64)(unsafe.Add(dst, i)), w)
	}
	if i < n {
		var w uint64
		copy((*word)(unsafe.Pointer(&w))[:], unsafe.Slice((*byte)(unsafe.Add(src, i)), n-i))
		atomic.StoreUint64((*uint64)(unsafe.Add(dst, i)), w)
	}
}
