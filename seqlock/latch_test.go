package seqlock

import (
	"bytes"
	"math/rand/v2"
	"reflect"
	"sync"
	"testing"
	"unsafe"
)

// TestLatch_LoadBesideStoppedUpdate has readers that are the first to use the
// Latch, and others, while an Update does not return.
func TestLatch_LoadBesideStoppedUpdate(t *testing.T) {
	var l Latch[words128]
	stopped, resume, done := make(chan struct{}), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		l.Update(func(x *words128) {
			*x = splat(2)
			close(stopped)
			<-resume
		})
	}()
	<-stopped
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 1000 {
				if x := l.Load(); x != (words128{}) || l.Version() != 0 {
					t.Errorf("beside an Update that has not returned: %v, version %d", x, l.Version())
					return
				}
			}
		})
	}
	wg.Wait() // The writer cannot go on before they have ended.
	close(resume)
	<-done
	if x := l.Load(); x != splat(2) || l.Version() != 1 {
		t.Errorf("after the Update: %v, version %d", x, l.Version())
	}
}

// A rawLatch is a Latch whose T is any number of bytes of each half.
type rawLatch struct {
	latch
	halves [2]struct{ buf [maxSize + 16]byte }
}

const rawStride = unsafe.Sizeof(rawLatch{}.halves[0])

type latchRoutines struct {
	name  string
	load  func(h *latch, dst any, n, stride uintptr)
	write func(h *latch, src any, n, stride uintptr)
}

// latches are the portable routines, those of this build, and each one's reader
// beside the other's writer.
var latches = []latchRoutines{
	{"generic", anyLoadLatchGeneric, anyWriteLatchGeneric},
	{"build", anyLoadLatch, anyWriteLatch},
	{"build-load", anyLoadLatch, anyWriteLatchGeneric},
	{"build-write", anyLoadLatchGeneric, anyWriteLatch},
}

// As anyLoad and the others.

func anyLoadLatch(h *latch, dst any, n, stride uintptr) {
	loadLatch(h, pointer(dst), n, stride, dst)
}

func anyLoadLatchGeneric(h *latch, dst any, n, stride uintptr) {
	loadLatchGeneric(h, pointer(dst), n, stride, dst)
}

func anyWriteLatch(h *latch, src any, n, stride uintptr) {
	writeLatch(h, pointer(src), n, stride)
}

func anyWriteLatchGeneric(h *latch, src any, n, stride uintptr) {
	writeLatchGeneric(h, pointer(src), n, stride)
}

// TestLatch_StoppedInTheMiddle is facts 1 and 3 of latch: it takes a Latch into
// the middle of a write by hand, for each version that differs in the lower bits
// of seq, and where the counter wraps.
func TestLatch_StoppedInTheMiddle(t *testing.T) {
	for _, im := range latches {
		t.Run(im.name, func(t *testing.T) {
			for _, start := range []uint64{0, 1, 2, 3, 1<<32 - 1, 1<<62 - 2, 1<<62 - 1} {
				var r rawLatch
				r.seq.Store(start<<countShift | checked)
				x := splat(1)
				im.write(&r.latch, &x, maxSize, rawStride)
				s := r.seq.Load()
				if want := (start+1)<<countShift | checked; s != want {
					t.Fatalf("a write takes seq from %x to %x, want %x", start<<countShift|checked, s, want)
				}
				// The next write's first step, and half of its words.
				r.seq.Store(s + writing)
				y := splat(2)
				copyIn(r.half(s+oneWrite, rawStride), unsafe.Pointer(&y), maxSize/2)
				r.mu.Lock() // as its writer does
				got := make(chan words128)
				go func() {
					var z words128
					im.load(&r.latch, &z, maxSize, rawStride)
					got <- z
				}()
				if z := <-got; z != x {
					t.Fatalf("version %d: a load beside a write that was stopped gives %v", start+1, z)
				}
				r.mu.Unlock()
				r.seq.Store(s)
				im.write(&r.latch, &y, maxSize, rawStride)
				var z words128
				if im.load(&r.latch, &z, maxSize, rawStride); z != y {
					t.Fatalf("version %d: %v", start+2, z)
				}
			}
		})
	}
}

// TestLatch_Overtaken is fact 2 of latch: a reader is content with a write that
// ended since it began, and not with the start of the one after.
func TestLatch_Overtaken(t *testing.T) {
	for _, test := range []struct {
		from, to uint64
		want     bool
	}{ // in steps, of which each write has two
		{0, 0, true}, {0, 1, true}, {0, 2, true}, {0, 3, false}, {0, 4, false}, {0, 1 << 40, false},
		{1, 1, true}, {1, 2, true}, {1, 3, false}, {1, 4, false},
		{2, 2, true}, {2, 4, true}, {2, 5, false}, {3, 4, true}, {3, 5, false}, {1<<63 - 2, 0, true}, {1<<63 - 2, 1, false},
	} {
		s := checked + test.from*writing
		if got := undisturbed(s, checked+test.to*writing); got != test.want {
			t.Errorf("from step %d to step %d: %v, want %v", test.from, test.to, got, test.want)
		}
	}
}

func TestLatch_Words(t *testing.T) {
	step := 1
	if testing.Short() {
		step = 13
	}
	rnd := rand.New(rand.NewPCG(1, 2))
	for _, im := range latches {
		t.Run(im.name, func(t *testing.T) {
			eachCopy(t, func() {
				for n := 0; n <= maxSize; n += step {
					latchRoundTrip(t, im, n, n%8, rnd)
				}
			})
		})
	}
}

// latchRoundTrip is roundTrip for a Latch: two writes, each to the half that the
// other one leaves alone.
func latchRoundTrip(t *testing.T, im latchRoutines, n, align int, rnd *rand.Rand) {
	t.Helper()
	const guard = 16
	var r rawLatch
	r.seq.Store(checked)
	caller := make([]byte, guard+8+n+guard)
	mine := caller[guard+align:]
	for i := range 2 {
		to, other := &r.halves[1-i].buf, &r.halves[i].buf
		fill(to[:], rnd)
		fill(caller, rnd)
		toWas, otherWas, callerWas := *to, *other, bytes.Clone(caller)
		im.write(&r.latch, &mine[0], uintptr(n), rawStride)
		if end := (n + 7) &^ 7; !bytes.Equal(to[:n], mine[:n]) || !bytes.Equal(to[end:], toWas[end:]) {
			t.Fatalf("%s: size %d: stored bytes differ, or others changed", im.name, n)
		}
		if *other != otherWas || !bytes.Equal(caller, callerWas) {
			t.Fatalf("%s: size %d: a write changed the other half or its source", im.name, n)
		}
		fill(caller, rnd)
		was, want := r.halves, bytes.Clone(caller)
		copy(want[guard+align:], to[:n])
		im.load(&r.latch, &mine[0], uintptr(n), rawStride)
		if !bytes.Equal(caller, want) {
			t.Fatalf("%s: size %d: loaded bytes or their neighbours are wrong", im.name, n)
		}
		if r.halves != was {
			t.Fatalf("%s: size %d: a load changed what it reads", im.name, n)
		}
	}
}

func TestLatch_NoAllocation(t *testing.T) {
	var l Latch[[8]uint64]
	x := [8]uint64{1}
	add := func(p *[8]uint64) { p[0]++ }
	l.Update(add) // allocates its private copy
	for name, f := range map[string]func(){
		"Load":      func() { x = l.Load() },
		"LoadTo":    func() { l.LoadTo(&x) },
		"Version":   func() { x[1] = l.Version() },
		"Store":     func() { l.Store(x) },
		"StoreFrom": func() { l.StoreFrom(&x) },
		"Update":    func() { l.Update(add) },
	} {
		if n := testing.AllocsPerRun(100, f); n != 0 {
			t.Errorf("%s allocates %v times", name, n)
		}
	}
}

// TestLatch_Layout checks what latch_unsafe.go says of it.
func TestLatch_Layout(t *testing.T) {
	for _, typ := range []reflect.Type{
		reflect.TypeFor[Latch[struct{}]](),
		reflect.TypeFor[Latch[byte]](),
		reflect.TypeFor[Latch[[3]byte]](),
		reflect.TypeFor[Latch[int32]](),
		reflect.TypeFor[Latch[[5]uint64]](),
	} {
		head, _ := typ.FieldByName("latch")
		halves, _ := typ.FieldByName("halves")
		if halves.Offset != head.Offset+head.Type.Size() || halves.Offset%8 != 0 || typ.Align() != 8 || head.Offset < line {
			t.Errorf("%v: latch of %d bytes at %d, halves at %d, alignment %d", typ, head.Type.Size(), head.Offset, halves.Offset, typ.Align())
		}
		half := halves.Type.Elem()
		val, _ := half.FieldByName("val")
		if end := (val.Type.Size() + 7) &^ 7; val.Offset != 0 || half.Size()%8 != 0 || end+line > half.Size() {
			t.Errorf("%v: T at %d, its last word ends at %d of %d", half, val.Offset, end, half.Size())
		}
	}
}
