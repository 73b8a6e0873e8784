// This file imports unsafe for the size of a T, and to see the two that a Latch
// holds as words. That they lie right behind the latch, the second one a fixed
// distance after the first, is a fact of Go's struct and array layout; that they
// are aligned to 8 bytes on every platform is what half's first field is for.
// TestLatch_Layout checks both. Tried with Go 1.26.

package seqlock

import (
	"reflect"
	"sync"
	"sync/atomic"
	"unsafe"
)

// Latch holds a T in two copies, of which a writer only ever touches the one
// that nobody is sent to: a Load waits for no writer, not even for one whose
// thread was stopped in the middle of a write. T must hold no pointers.
//
// The zero Latch holds the zero T, and is ready. A Latch must not be copied
// after first use. All methods may be called from any number of goroutines. The
// first use panics, with the path of the field, if T holds a pointer; see
// [Value] for what that is, and why.
//
// Take a Latch where a reader must not depend on writers at all: because it has a
// deadline, or because they have a lower priority or a slower processor. From 512
// bytes on it also serves readers better beside a writer that never rests.
// Otherwise a [Value] takes half of the memory, and half of the time to Store.
//
// A Store or Update synchronizes before each Load and Version that returns its
// result or a later one, and before each later Store and Update; LoadTo counts as
// a Load, StoreFrom as a Store. Operations on different Latches are in no order
// that all goroutines agree on.
//
// Load, Store and Update take time in O(size of T). A Load must be made again
// only if a whole write and the start of another one fall into it; each such
// attempt means that some writer got on, so Loads are lock-free, and after some
// attempts one tries to keep the writers out. With no writer near, it writes
// nothing that is shared. Nothing allocates, but for one T in the first Update.
//
// The algorithm is Linux's seqcount_latch, except that a write fills one copy
// and not both, and that a reader is content if its own copy was left alone.
type Latch[T any] struct {
	_       [line]byte
	private *T // Update's copy; guarded by mu
	latch
	halves [2]half[T]
}

// A half is one of the two copies.
type half[T any] struct {
	_   [0]atomic.Uint64 // aligns val to 8 bytes
	val T
	// The rest of val's last word, which is read and written along with it, and
	// a line more, so that what is written to one half does not slow those who
	// read the other.
	_ [8 + line]byte
}

// latch is the part of a Latch that does not depend on T. The halves follow it,
// each of them stride bytes long, of which T takes n.
//
// Facts, which the tests refer to:
//
//  1. Version k is in half k&1, and version k+1 is written to the other one.
//     So a half that holds version k is left alone from the step that ends write
//     k to the step that begins write k+2.
//  2. A reader takes k from seq, copies half k&1, and looks at seq again. If
//     write k+2 had not begun by then, all that it copied is version k's. That
//     was the current version when it took k.
//  3. No writer can make a reader wait: with seq at rest there is no step that
//     a reader needs, and one in the middle of write k+1 does not touch half k&1.
//  4. A write that is given up before its first step changes nothing.
type latch struct {
	mu sync.Mutex // held by writers, and by a reader that was overtaken often
	// seq tells how far the writers are. Who holds mu changes it, upwards.
	//
	//	bits 63-2  number of writes that are complete
	//	bit 1      writing: the next one is under way
	//	bit 0      T was checked. While 0, anyone may set it.
	seq atomic.Uint64
}

const (
	checked = 1
	writing = 2
)

// Load returns the value. It never waits.
func (l *Latch[T]) Load() (x T) {
	loadLatch(&l.latch, unsafe.Pointer(&x), unsafe.Sizeof(x), unsafe.Sizeof(l.halves[0]), (*T)(nil))
	return x
}

// LoadTo is *dst = l.Load() without the copies that the compiler makes of a
// large result. What dst points to is the caller's own: until LoadTo returns,
// it may hold anything.
func (l *Latch[T]) LoadTo(dst *T) {
	_ = *dst // A nil dst must not fault in loadLatch: a reader may hold mu there.
	loadLatch(&l.latch, unsafe.Pointer(dst), unsafe.Sizeof(*dst), unsafe.Sizeof(l.halves[0]), (*T)(nil))
}

// Version returns the number of writes so far. It never waits. A Load that
// begins when Version has returned k gives what write k stored, or a later one.
func (l *Latch[T]) Version() uint64 {
	l.use((*T)(nil))
	return l.seq.Load() >> countShift // Pairs with the last step of writeLatch.
}

// Store sets the value to x. It may block while another goroutine writes, and
// it does for as long as an Update runs: inside one it would block for ever.
func (l *Latch[T]) Store(x T) {
	l.StoreFrom(&x)
}

// StoreFrom is l.Store(*src) without the copies that the compiler makes of a
// large argument. What src points to is the caller's own: nobody may write it
// until StoreFrom returns.
func (l *Latch[T]) StoreFrom(src *T) {
	_ = *src // A nil src must not fault in writeLatch: that would be a write for ever.
	l.use((*T)(nil))
	l.mu.Lock()
	defer l.mu.Unlock()
	writeLatch(&l.latch, unsafe.Pointer(src), unsafe.Sizeof(*src), unsafe.Sizeof(l.halves[0]))
}

// Update runs fn on a private copy of the value and then makes that the value.
// Nobody else writes in the meantime, and readers get the old value until fn has
// returned. If fn panics, or ends its goroutine, value and Version stay as they
// were.
//
// fn must not Store to or Update the same Latch, which would block for ever; it
// may Load, and gets the old value. It must not keep its argument. Update blocks
// while another goroutine writes.
func (l *Latch[T]) Update(fn func(*T)) {
	l.use((*T)(nil))
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.private == nil {
		l.private = new(T)
	}
	// Nobody writes it: mu is ours.
	*l.private = l.halves[l.seq.Load()>>countShift&1].val
	fn(l.private)
	writeLatch(&l.latch, unsafe.Pointer(l.private), unsafe.Sizeof(*l.private), unsafe.Sizeof(l.halves[0]))
}

// use checks, when h is used for the first time, that T may be in a Latch.
// typ is a *T, of which only the type is looked at.
func (h *latch) use(typ any) {
	if h.seq.Load() == 0 {
		mustHoldNoPointers("Latch", reflect.TypeOf(typ).Elem())
		h.seq.CompareAndSwap(0, checked)
	}
}

// half returns the address of the half with version s>>countShift.
func (h *latch) half(s uint64, stride uintptr) unsafe.Pointer {
	return unsafe.Add(unsafe.Pointer(h), unsafe.Sizeof(*h)+uintptr(s>>countShift&1)*stride)
}

// loadLatchGeneric copies the current T to *dst, which is one. It is the portable
// loadLatch, as writeLatchGeneric is the portable writeLatch.
func loadLatchGeneric(h *latch, dst unsafe.Pointer, n, stride uintptr, typ any) {
	if !tryLoadLatch(h, dst, n, stride) {
		loadLatchSlow(h, dst, n, stride, typ)
	}
}

// loadLatchSlow is loadLatch for a Latch that is new, or after an attempt that
// failed. There is nothing to pause for: whoever was in the way has got on.
func loadLatchSlow(h *latch, dst unsafe.Pointer, n, stride uintptr, typ any) {
	h.use(typ)
	for i := 0; !tryLoadLatch(h, dst, n, stride); i++ {
		// Not Lock: its holder may be stopped, or in the function of an Update,
		// and the next attempt cannot fail then.
		if i >= tries && h.mu.TryLock() {
			tryLoadLatch(h, dst, n, stride) // Cannot fail: mu is ours.
			h.mu.Unlock()
			return
		}
	}
}

// tryLoadLatch makes one attempt at loadLatch. If it fails it leaves anything in
// *dst.
//
// It and writeLatchGeneric access what they share by sync/atomic only. So all of
// that is in one order, which each goroutine's own order agrees with, on every
// processor; on arm64 because the loads are LDAR and the stores STLR.
func tryLoadLatch(h *latch, dst unsafe.Pointer, n, stride uintptr) bool {
	// Pairs with the last step of writeLatch: what was written before it, to the
	// half that this sends us to, is seen here.
	s := h.seq.Load()
	if s == 0 {
		return false
	}
	copyOut(dst, h.half(s, stride), n)
	// Pairs with the first step of writeLatch: if a word that was copied is of
	// write k+2, this load comes after the step that began it.
	return undisturbed(s, h.seq.Load())
}

// undisturbed reports whether a reader that found s at first, and now at last,
// is content: the write after the next one has not begun.
func undisturbed(s, now uint64) bool { return now-(s&^writing) < oneWrite+writing }

// writeLatchGeneric makes *src, which is a T, the next version. The caller holds
// h.mu.
func writeLatchGeneric(h *latch, src unsafe.Pointer, n, stride uintptr) {
	s := h.seq.Load()
	// Pairs with the last load of tryLoadLatch: no word is seen before this step.
	h.seq.Store(s + writing)
	copyIn(h.half(s+oneWrite, stride), src, n)
	// Pairs with the first load of tryLoadLatch: who sees this step sees all words.
	h.seq.Store(s + oneWrite)
}
