// This file imports unsafe for the size of a T, a pointer to any, and a T of words. That T lies right behind the
// head is a fact of Go's struct layout: head is aligned to 8 bytes on every
// platform (it holds an atomic.Uint64), has a size that is a multiple of 8, and
// no T wants more. TestValueLayout checks it.

package seqlock

import "unsafe"

// Value holds a T that any number of goroutines read without locks, each read
// giving a T that was stored as a whole. T must hold no pointers.
//
// The zero Value holds the zero T, and is ready. A Value must not be copied
// after first use. All methods may be called from any number of goroutines.
//
// Pointers are strings, slices, maps, interfaces, channels and funcs too. The
// first use of a Value panics, with the path of the field, if T holds one; for
// such a T take an [atomic.Pointer] to one that is never changed. The reason
// is that a T is copied as words which the garbage collector does not see.
//
// A Store or Update synchronizes before each Load, TryLoad and Version that
// returns its result or a later one, and before each later Store and Update.
// LoadTo counts as a Load, StoreFrom as a Store. That is all: unlike the
// operations of sync/atomic, those on different Values are in no order that all
// goroutines agree on. Two goroutines that each Store to one Value and then Load
// the other may both miss what the other stored.
//
// Load and Store take time in O(size of T). With no writer near, a Load
// writes nothing that is shared, so readers do not slow each other. A larger T
// makes it likelier that a read meets a write and must be repeated: past some
// 512 bytes, or with writers that never rest, an atomic.Pointer or package rcu
// is the better choice. Nothing allocates, but for one T in the first Update.
//
// A read that is overtaken by writers tries again, and after some attempts it
// keeps them out for as long as it takes to copy T.
//
// The algorithm is Linux's seqcount, with the writers' lock in the counter.
type Value[T any] struct {
	_       [line]byte
	private *T // Update's copy; guarded by mu
	head
	val T // written by the owner of head.seq, while it is not open
	// The rest of val's last word, which the portable code reads and writes
	// along with it, and a line more.
	_ [8 + line]byte
}

// line keeps a Value's neighbours in memory off its cache lines, so that what
// is written there does not slow the readers here. 64 bytes is the line of
// amd64 and of most arm64.
const line = 64

// Load returns the value. It waits while a write is copying its T, which takes
// as long as this copy does, and for nothing else: not for the function that
// Update runs.
func (v *Value[T]) Load() (x T) {
	inline(func() {
		if !isFew[T]() {
			load(&v.head, unsafe.Pointer(&x), unsafe.Sizeof(x), (*T)(nil))
			return
		}
		s := v.seq.Load() // Pairs with the last step of store and publish.
		w := copyFew(v.words(), unsafe.Sizeof(x))
		// The loads in copyFew are atomic and so cannot pass this one.
		now := v.seq.Load() // Pairs with the first step of store and publish.
		if s&open == 0 || (now^s)&^owned != 0 {
			w = loadFewSlow(&v.head, unsafe.Sizeof(x), (*T)(nil))
		}
		// Arrays of T's size, of which the compiler makes stores of words to where x goes.
		switch (unsafe.Sizeof(x) + 7) / 8 {
		case 4:
			x = *(*T)(unsafe.Pointer(&[4]uint64{w.a, w.b, w.c, w.d}))
		case 3:
			x = *(*T)(unsafe.Pointer(&[3]uint64{w.a, w.b, w.c}))
		case 2:
			x = *(*T)(unsafe.Pointer(&[2]uint64{w.a, w.b}))
		default:
			x = *(*T)(unsafe.Pointer(&[1]uint64{w.a}))
		}
	})
	return x
}

// LoadTo is *dst = v.Load() without the copies that the compiler makes of a
// large result. What dst points to is the caller's own: until LoadTo returns,
// it may hold anything.
func (v *Value[T]) LoadTo(dst *T) {
	_ = *dst // A nil dst must not fault in load: a reader may own seq there.
	inlineTo(func() {
		if isFew[T]() {
			*dst = v.Load()
			return
		}
		load(&v.head, unsafe.Pointer(dst), unsafe.Sizeof(*dst), (*T)(nil))
	})
}

// TryLoad is Load for a caller that must not wait: it makes one attempt, and
// reports false if a write was in its way.
func (v *Value[T]) TryLoad() (x T, ok bool) {
	v.head.use((*T)(nil))
	if !tryLoad(&v.head, unsafe.Pointer(&x), unsafe.Sizeof(x)) {
		var zero T // x may be torn
		return zero, false
	}
	return x, true
}

// Version returns the number of writes so far. It never waits. While Version
// stays the same, so does what Load returns: a caller that takes a Version, and
// then Loads, has a value that is current until Version changes.
func (v *Value[T]) Version() uint64 {
	v.head.use((*T)(nil))
	return v.seq.Load() >> countShift // Pairs with the last step of publish and store.
}

// Store sets the value to x. It may block while another goroutine writes, and
// it does for as long as an Update runs: inside one it would block for ever.
func (v *Value[T]) Store(x T) {
	store(&v.head, unsafe.Pointer(&x), unsafe.Sizeof(x), (*T)(nil))
}

// StoreFrom is v.Store(*src) without the copies that the compiler makes of a
// large argument. What src points to is the caller's own: nobody may write it
// until StoreFrom returns.
func (v *Value[T]) StoreFrom(src *T) {
	_ = *src // A nil src must not fault in store: in state 10 that would be for ever.
	store(&v.head, unsafe.Pointer(src), unsafe.Sizeof(*src), (*T)(nil))
}

// Update runs fn on a private copy of the value and then makes that the value.
// Nobody else writes in the meantime. Readers do not notice before fn has
// returned. If fn panics, or ends its goroutine, value and Version stay as they
// were.
//
// fn must not Store to or Update the same Value, which would block for ever; it
// may Load, and gets the old one. It must not keep its argument. Update blocks
// while another goroutine writes.
func (v *Value[T]) Update(fn func(*T)) {
	v.head.use((*T)(nil))
	v.head.lock()
	defer v.head.unlock()
	if v.private == nil {
		v.private = new(T)
	}
	*v.private = v.val // Nobody writes it: seq is ours.
	fn(v.private)
	publish(&v.head, unsafe.Pointer(v.private), unsafe.Sizeof(v.val))
}
