package seqlock

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"
)

// A raw is a Value whose T is any number of bytes of buf.
type raw struct {
	head
	buf [maxSize + 16]byte
}

const maxSize = 1024

// routines is one implementation of what words_unsafe.go specifies.
type routines struct {
	name    string
	load    func(h *head, dst any, n uintptr)
	store   func(h *head, src any, n uintptr)
	publish func(h *head, src any, n uintptr)
	exact   bool // writes no byte beyond the n of a T
}

// implementations are the portable routines and those of this build, each way.
func implementations() []routines {
	return []routines{
		{"generic", loadGeneric, storeGeneric, publishGeneric, false},
		{"build", load, store, publish, false},
		{"build-load", load, storeGeneric, publishGeneric, false},
		{"build-store", loadGeneric, store, publish, false},
	}
}

func fill(p []byte, rnd *rand.Rand) {
	for i := range p {
		p[i] = byte(rnd.Uint32()) | 0x80 // no zero, and the high bit set
	}
}

// roundTrip checks that n bytes go in and out unchanged, at every alignment of
// the caller's T, and that nothing beside them changes: around the caller's,
// not a byte, and behind the shared ones, nothing but the rest of a word.
func roundTrip(t *testing.T, im routines, n, align int, rnd *rand.Rand) {
	t.Helper()
	const guard = 16
	var r raw
	caller := make([]byte, guard+8+n+guard)
	write := func(f func(h *head, src any, n uintptr), count uint64) {
		t.Helper()
		fill(r.buf[:], rnd)
		fill(caller, rnd)
		src := caller[guard+align:]
		shared, mine := r.buf, bytes.Clone(caller)
		f(&r.head, &src[0], uintptr(n))
		if !bytes.Equal(r.buf[:n], src[:n]) {
			t.Fatalf("%s: size %d, alignment %d: stored bytes differ", im.name, n, align)
		}
		if words := (n + 7) &^ 7; !bytes.Equal(r.buf[words:], shared[words:]) {
			t.Fatalf("%s: size %d, alignment %d: bytes after the stored ones changed", im.name, n, align)
		}
		if !bytes.Equal(mine, caller) {
			t.Fatalf("%s: size %d, alignment %d: a store changed its source", im.name, n, align)
		}
		if got := r.seq.Load() >> countShift; got != count {
			t.Fatalf("%s: size %d: count is %d after %d writes", im.name, n, got, count)
		}
	}
	write(im.store, 1) // new, so by storeSlow
	write(im.store, 2)
	r.lock()
	write(im.publish, 3)
	if s := r.seq.Load() & states; s != states {
		t.Fatalf("%s: publish left state %02b", im.name, s)
	}
	r.unlock()
	if s := r.seq.Load() & states; s != open {
		t.Fatalf("%s: unlock left state %02b", im.name, s)
	}

	fill(r.buf[:], rnd)
	fill(caller, rnd)
	shared, want := r.buf, bytes.Clone(caller)
	dst := caller[guard+align:]
	copy(want[guard+align:], r.buf[:n])
	im.load(&r.head, &dst[0], uintptr(n))
	if !bytes.Equal(caller, want) {
		t.Fatalf("%s: size %d, alignment %d: loaded bytes or their neighbours are wrong", im.name, n, align)
	}
	if r.buf != shared {
		t.Fatalf("%s: size %d, alignment %d: a load changed what it reads", im.name, n, align)
	}
}

func TestWords(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	for _, im := range implementations() {
		t.Run(im.name, func(t *testing.T) {
			defer withoutAVX(t, false)()
			for n := range maxSize + 1 {
				roundTrip(t, im, n, n%8, rnd)
				roundTrip(t, im, n, 0, rnd)
			}
			defer withoutAVX(t, true)()
			for n := range maxSize + 1 {
				roundTrip(t, im, n, n%8, rnd)
			}
		})
	}
}

func FuzzWords(f *testing.F) {
	for _, n := range []uint16{0, 1, 3, 7, 8, 9, 63, 64, 65, 127, 128, 129, 191, 192, 193, 1024} {
		f.Add(n, uint8(n), uint64(n), false)
	}
	f.Fuzz(func(t *testing.T, n uint16, align uint8, seed uint64, plain bool) {
		defer withoutAVX(t, plain)()
		for _, im := range implementations() {
			roundTrip(t, im, int(n)%(maxSize+1), int(align)%8, rand.New(rand.NewPCG(seed, 0)))
		}
	})
}

// TestWords_States checks that the routines do nothing in a state in which they
// must leave it to the slow ones, and that those come from there.
func TestWords_States(t *testing.T) {
	x := [4]uint64{1, 2, 3, 4}
	for _, im := range implementations() {
		// A read of T in state 11 does not disturb the owner.
		var r raw
		r.use(&x)
		r.lock()
		s := r.seq.Load()
		var got [4]uint64
		im.load(&r.head, &got, 32)
		if got != ([4]uint64{}) || r.seq.Load() != s {
			t.Errorf("%s: load in state 11: %v, seq %b, want zeros and %b", im.name, got, r.seq.Load(), s)
		}
		// A store in state 11 waits until that is over.
		done := make(chan struct{})
		go func() {
			defer close(done)
			im.store(&r.head, &x, 32)
		}()
		for r.mu.TryLock() { // Cannot happen, as we hold it.
			t.Fatal("mu was free")
		}
		im.load(&r.head, &got, 32)
		if got != ([4]uint64{}) {
			t.Errorf("%s: store in state 11 has stored %v", im.name, got)
		}
		r.unlock()
		<-done
		im.load(&r.head, &got, 32)
		if got != x {
			t.Errorf("%s: got %v, want %v", im.name, got, x)
		}
		// A read in state 10 waits for the write to end.
		s = r.seq.Load()
		r.seq.Store(s - open + owned)
		if tryLoad(&r.head, &got, 32) {
			t.Errorf("%s: tryLoad in state 10 succeeded", im.name)
		}
		done = make(chan struct{})
		go func() {
			defer close(done)
			var got [4]uint64
			im.load(&r.head, &got, 32)
			if got != [4]uint64{5, 6, 7, 8} {
				t.Errorf("%s: a load that waited got %v", im.name, got)
			}
		}()
		copy(r.buf[:], bytesOf([4]uint64{5, 6, 7, 8}))
		r.seq.Store(s + oneWrite)
		<-done
	}
}

func bytesOf(x [4]uint64) (b []byte) {
	var r raw
	loadable := x
	r.use(&x)
	storeGeneric(&r.head, &loadable, 32)
	return r.buf[:32]
}

func ExampleValue_pointer() {
	type entry struct {
		id    int
		names [2]string
	}
	defer func() { fmt.Println(recover()) }()
	var v Value[entry]
	v.Load()
	// Output:
	// seqlock: a Value cannot hold a seqlock.entry, as T.names[0] is or holds a pointer: string
}
