package seqlock

import (
	"bytes"
	"math/rand/v2"
	"testing"
	"unsafe"
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
}

// The routines as the tests use them: the pointer with its type, as one argument.
var (
	anyLoad, anyLoadGeneric       = withType(load), withType(loadGeneric)
	anyStore, anyStoreGeneric     = withType(store), withType(storeGeneric)
	anyPublish, anyPublishGeneric = withoutType(publish), withoutType(publishGeneric)
)

func withType[H any](f func(h *H, p unsafe.Pointer, n uintptr, typ any)) func(h *H, p any, n uintptr) {
	return func(h *H, p any, n uintptr) { f(h, pointer(p), n, p) }
}

func withoutType[H any](f func(h *H, p unsafe.Pointer, n uintptr)) func(h *H, p any, n uintptr) {
	return func(h *H, p any, n uintptr) { f(h, pointer(p), n) }
}

// pointer returns the pointer in p, which holds one: the second of its two words.
func pointer(p any) unsafe.Pointer {
	return (*[2]unsafe.Pointer)(unsafe.Pointer(&p))[1]
}

// implementations are the portable routines, those of this build, and each
// one's reader beside the other's writer.
var implementations = []routines{
	{"generic", anyLoadGeneric, anyStoreGeneric, anyPublishGeneric},
	{"build", anyLoad, anyStore, anyPublish},
	{"build-load", anyLoad, anyStoreGeneric, anyPublishGeneric},
	{"build-store", anyLoadGeneric, anyStore, anyPublish},
}

func fill(p []byte, rnd *rand.Rand) {
	for i := range p {
		p[i] = byte(rnd.Uint32()) | 0x80 // no zero, and the high bit set
	}
}

// roundTrip checks that n bytes go in and out unchanged, with the caller's T
// align bytes off a word, and that nothing beside them changes: of the caller's
// not a byte, and behind the shared ones nothing but the rest of a word.
func roundTrip(t *testing.T, im routines, n, align int, rnd *rand.Rand) {
	t.Helper()
	const guard = 16
	var r raw
	caller := make([]byte, guard+8+n+guard)
	mine := caller[guard+align:]
	write := func(f func(h *head, src any, n uintptr), count uint64) {
		t.Helper()
		fill(r.buf[:], rnd)
		fill(caller, rnd)
		sharedWas, callerWas := r.buf, bytes.Clone(caller)
		f(&r.head, &mine[0], uintptr(n))
		if !bytes.Equal(r.buf[:n], mine[:n]) {
			t.Fatalf("%s: size %d, alignment %d: stored bytes differ", im.name, n, align)
		}
		if end := (n + 7) &^ 7; !bytes.Equal(r.buf[end:], sharedWas[end:]) {
			t.Fatalf("%s: size %d, alignment %d: bytes behind the stored ones changed", im.name, n, align)
		}
		if !bytes.Equal(caller, callerWas) {
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
	if s := r.seq.Load() & states; s != open|owned {
		t.Fatalf("%s: publish left state %02b", im.name, s)
	}
	r.unlock()
	if s := r.seq.Load() & states; s != open {
		t.Fatalf("%s: unlock left state %02b", im.name, s)
	}

	fill(r.buf[:], rnd)
	fill(caller, rnd)
	sharedWas, want := r.buf, bytes.Clone(caller)
	copy(want[guard+align:], r.buf[:n])
	im.load(&r.head, &mine[0], uintptr(n))
	if !bytes.Equal(caller, want) {
		t.Fatalf("%s: size %d, alignment %d: loaded bytes or their neighbours are wrong", im.name, n, align)
	}
	if r.buf != sharedWas {
		t.Fatalf("%s: size %d, alignment %d: a load changed what it reads", im.name, n, align)
	}
}

func TestWords(t *testing.T) {
	step := 1
	if testing.Short() {
		step = 13
	}
	rnd := rand.New(rand.NewPCG(1, 2))
	for _, im := range implementations {
		t.Run(im.name, func(t *testing.T) {
			eachCopy(t, func() {
				for n := 0; n <= maxSize; n += step {
					roundTrip(t, im, n, 0, rnd)
					roundTrip(t, im, n, n%7+1, rnd)
				}
			})
		})
	}
}

func FuzzWords(f *testing.F) {
	for _, n := range []uint16{0, 1, 3, 7, 8, 9, 63, 64, 65, 127, 128, 129, 191, 192, 193, 1024} {
		f.Add(n, uint8(n), uint64(n))
	}
	f.Fuzz(func(t *testing.T, n uint16, align uint8, seed uint64) {
		eachCopy(t, func() {
			for _, im := range implementations {
				roundTrip(t, im, int(n)%(maxSize+1), int(align)%8, rand.New(rand.NewPCG(seed, 0)))
			}
		})
	})
}

// TestHead_States takes a Value through its states by hand and looks at what
// the routines do in each.
func TestHead_States(t *testing.T) {
	type four [4]uint64
	for _, im := range implementations {
		t.Run(im.name, func(t *testing.T) {
			var r raw
			loaded := func() (x four) {
				im.load(&r.head, &x, 32)
				return x
			}
			if x := loaded(); x != (four{}) || r.seq.Load() != open {
				t.Fatalf("a new Value loads %v and goes to %b, want zeros and %b", x, r.seq.Load(), open)
			}
			r.lock()
			s := r.seq.Load()
			if x := loaded(); x != (four{}) || r.seq.Load() != s {
				t.Fatalf("a load in state 11 gives %v and goes to %b, want zeros and %b", x, r.seq.Load(), s)
			}
			stored := make(chan struct{})
			go func() {
				defer close(stored)
				im.store(&r.head, &four{1, 2, 3, 4}, 32)
			}()
			for range 1000 { // while the store tries to get in
				if x := loaded(); x != (four{}) || r.seq.Load() != s {
					t.Fatalf("beside a store in state 11, a load gives %v and seq is %b, want zeros and %b", x, r.seq.Load(), s)
				}
			}
			r.unlock()
			<-stored
			if x := loaded(); x != (four{1, 2, 3, 4}) {
				t.Fatalf("after the store: %v", x)
			}

			s = r.seq.Load()
			r.seq.Store(s - open + owned) // begins a write
			var x four
			if tryLoad(&r.head, unsafe.Pointer(&x), 32) {
				t.Fatal("tryLoad succeeded in state 10")
			}
			got := make(chan four)
			go func() { got <- loaded() }()
			for r.waiting.Load() == 0 { // until the load waits
			}
			copyIn(r.words(), unsafe.Pointer(&four{5, 6, 7, 8}), 32)
			r.seq.Store(s + oneWrite)
			if x := <-got; x != (four{5, 6, 7, 8}) {
				t.Fatalf("a load that waited gives %v", x)
			}
		})
	}
}
