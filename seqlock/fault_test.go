package seqlock

import (
	"fmt"
	"reflect"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// The tests here are named after faults that other sequence locks have had.

// uniform has one writer store words that are all alike, and readers look for
// some that are not. It makes the given number of reads in all.
func uniform[T any](t *testing.T, readers, reads int, splat func(uint64) T, ok func(T) bool) {
	t.Helper()
	var (
		v      Value[T]
		stop   atomic.Bool
		writer sync.WaitGroup
		wg     sync.WaitGroup
	)
	writer.Go(func() {
		for i := uint64(0); !stop.Load(); i++ {
			v.Store(splat(i | i<<32))
		}
	})
	for range readers {
		wg.Go(func() {
			for range reads / readers {
				if x := v.Load(); !ok(x) {
					t.Errorf("torn: %v", x)
					return
				}
			}
		})
	}
	wg.Wait()
	stop.Store(true)
	writer.Wait()
}

func uniform32(t *testing.T, readers, reads int) {
	t.Helper()
	type words = [4]uint64
	uniform(t, readers, reads,
		func(i uint64) words { return words{i, i, i, i} },
		func(x words) bool { return x == words{x[0], x[0], x[0], x[0]} })
}

// S1: no load fence between payload and re-check on arm64. The instructions
// are TestCompiled_ARM64's matter.
func TestFault_S1(t *testing.T) {
	reads := 1_000_000
	if testing.Short() {
		reads = 100_000
	}
	if *readsFlag > 0 {
		reads = *readsFlag
	}
	for readers := 1; readers <= 4; readers++ {
		uniform32(t, readers, reads/4)
	}
}

// S2: a writer that relied on its compare-and-swap to keep payload stores from
// passing it, which it does not without the atomics of ARMv8.1. Ours has a
// fence of its own for that, and needs LDAXR and STXR only: the same code runs
// on every arm64, which TestCompiled_ARM64 checks. Here the portable writer,
// whose compare-and-swap is the compiler's, is read by this build's reader. Run
// it on processors with and without those atomics.
func TestFault_S2(t *testing.T) {
	for _, im := range implementations {
		if n := torn(im.load, im.store, intactFor()); n > 0 {
			t.Errorf("%s: torn read", im.name)
		}
	}
}

// S3: a write that is given up must leave the version, and readers in flight.
func TestFault_S3(t *testing.T) {
	type words = words128 // so many that reads meet steps of writes
	var v Value[words]
	one := splat(1)
	v.Store(one)
	before := v.Version()
	var stop atomic.Bool
	var givenUp atomic.Int32
	var wg sync.WaitGroup
	wg.Go(func() {
		for !stop.Load() {
			func() {
				defer func() { recover() }()
				v.Update(func(x *words) {
					x[1] = 2
					panic("no change")
				})
			}()
			givenUp.Add(1)
		}
	})
	wg.Go(func() {
		for !stop.Load() {
			done := make(chan struct{})
			go func() {
				defer close(done)
				v.Update(func(x *words) {
					x[3] = 3
					runtime.Goexit()
				})
			}()
			<-done
			givenUp.Add(1)
		}
	})
	writes := int32(20_000)
	if testing.Short() {
		writes = 2000
	}
	for givenUp.Load() < writes {
		if x, ok := v.TryLoad(); !ok || x != one {
			t.Errorf("beside writes that are given up: %v, %v", x, ok)
			break
		}
		if got := v.Version(); got != before {
			t.Errorf("version went from %d to %d", before, got)
			break
		}
	}
	stop.Store(true)
	wg.Wait()
}

// S4: the counter was loaded twice, once not atomically, and could be rewound.
func TestFault_S4(t *testing.T) {
	var c Count
	s := c.Begin()
	c.WriteBegin()
	c.WriteEnd()
	if !c.Retry(s) {
		t.Error("Count: a read that a write fell into is valid")
	}
	var l Lock
	s = l.Begin()
	write(&l)
	if !l.Retry(s) {
		t.Error("Lock: a read that a write fell into is valid")
	}
	for _, typ := range []reflect.Type{reflect.TypeFor[*Count](), reflect.TypeFor[*Lock](), reflect.TypeFor[*Value[int]](), reflect.TypeFor[*Latch[int]]()} {
		for i := range typ.NumMethod() {
			if name := typ.Method(i).Name; strings.Contains(name, "Reset") || strings.Contains(name, "Set") {
				t.Errorf("%v has a method %s", typ, name)
			}
		}
	}
}

// S5: a counter of 32 bits is soon where it was; and whatever its size, it must
// work where it wraps.
func TestFault_S5(t *testing.T) {
	for _, start := range []uint64{1<<32 - 2, 1<<64 - 2} {
		var c Count
		var l Lock
		c.seq.Store(start)
		l.count.seq.Store(start)
		cs, ls := c.Begin(), l.Begin()
		for range 2 {
			c.WriteBegin()
			if s, ok := c.TryBegin(); ok {
				t.Errorf("Count at %d: TryBegin succeeds inside a write, with %d", start, s)
			}
			if !c.Retry(cs) {
				t.Errorf("Count at %d: stale sequence is valid inside a write", start)
			}
			c.WriteEnd()
			write(&l)
			if !c.Retry(cs) || !l.Retry(ls) {
				t.Errorf("Count or Lock at %d: stale sequence is valid", start)
			}
			if c.Retry(c.Begin()) || l.Retry(l.Begin()) {
				t.Errorf("Count or Lock at %d: fresh sequence is not valid", start)
			}
		}
		if want := start + 4; c.seq.Load() != want || l.count.seq.Load() != want {
			t.Errorf("from %d: %d and %d after two writes, want %d", start, c.seq.Load(), l.count.seq.Load(), want)
		}
	}
	// A Value counts in bits 2 and up: its last count before it wraps, and
	// where a 32-bit word and a 32-bit count would.
	for _, start := range []uint64{1<<64 - 4, 1<<32 - 4, 1<<34 - 4} {
		var v Value[uint64]
		v.seq.Store(start | open)
		stale := v.Version()
		for i := range uint64(3) {
			v.Store(i)
			if got := v.Load(); got != i {
				t.Errorf("Value at %d: Load = %d, want %d", start, got, i)
			}
			v.Update(func(x *uint64) { *x += 10 })
			if got, ok := v.TryLoad(); got != i+10 || !ok {
				t.Errorf("Value at %d: TryLoad = %d, %v, want %d", start, got, ok, i+10)
			}
			if v.Version() == stale {
				t.Errorf("Value at %d: a version came back", start)
			}
		}
	}
}

// S6: data races that the detector reports, if only after some time.
func TestFault_S6(t *testing.T) {
	reads := 2_000_000
	if testing.Short() {
		reads = 100_000
	}
	uniform32(t, 2, reads)
	type odd [13]byte // with a last word that is not full
	uniform(t, 2, reads/10,
		func(i uint64) (x odd) {
			for j := range x {
				x[j] = byte(i)
			}
			return x
		},
		func(x odd) bool {
			for _, b := range x {
				if b != x[0] {
					return false
				}
			}
			return true
		})
}

// S7: payloads of every size. TestWords has them all; these are types, whose
// copies the compiler makes.
func TestFault_S7(t *testing.T) {
	size[struct{}](t, struct{}{})
	size(t, uint8(0x81))
	size(t, true)
	size(t, [3]byte{1, 2, 3})
	size(t, [7]byte{1, 2, 3, 4, 5, 6, 7})
	size(t, [8]byte{7: 8})
	size(t, [9]byte{0: 1, 8: 9})
	size(t, [16]byte{0: 1, 15: 2})
	size(t, [3]float32{1, 2, 3})
	size(t, [2]uint32{1, 1<<32 - 1})
	size(t, [3]uint64{1, 2, 1<<64 - 1})
	size(t, [4]int64{1, -2, 3, -4})
	size(t, [5]int64{1, -2, 3, -4, 5})
	size(t, struct {
		a uint8
		b uint64
		c uint16
		d float32
		e bool
	}{1, 2, 3, 4, true})
	size(t, [63]byte{0: 1, 62: 2})
	size(t, [64]byte{0: 1, 63: 2})
	size(t, [65]byte{0: 1, 64: 2})
	size(t, [127]byte{0: 1, 126: 2})
	size(t, [128]byte{0: 1, 127: 2})
	size(t, [129]byte{0: 1, 128: 2})
	size(t, [300]uint16{0: 1, 299: 2})
	size(t, [0]string{})
	size(t, complex(1.5, -2))
	size(t, 1.25)
	type inner struct {
		a byte
		b [3]uint16
		c float32
	}
	size(t, struct {
		a [2]inner
		_ [0]func()
		b uintptr
		c struct{}
		d int8
	}{a: [2]inner{{1, [3]uint16{2, 3, 4}, 5}, {6, [3]uint16{7, 8, 9}, 10}}, b: 1<<32 - 1, d: -1})
}

// size checks that x goes through a Value and a Latch, and only through that one
// of three.
func size[T any](t *testing.T, x T) {
	t.Helper()
	v, l := new([3]Value[T]), new([3]Latch[T])
	sizeOf(t, x, []cell[T]{&v[0], &v[1], &v[2]})
	sizeOf(t, x, []cell[T]{&l[0], &l[1], &l[2]})
}

func sizeOf[T any](t *testing.T, x T, v []cell[T]) {
	t.Helper()
	var zero T
	for range 2 {
		v[1].StoreFrom(&x)
		if got := v[1].Load(); !reflect.DeepEqual(got, x) {
			t.Errorf("%T: StoreFrom and Load give %v, want %v", x, got, x)
		}
		v[1].Store(x)
		if got := v[1].Load(); !reflect.DeepEqual(got, x) {
			t.Errorf("%T: Store and Load give %v, want %v", x, got, x)
		}
		v[1].Update(func(p *T) {
			if !reflect.DeepEqual(*p, x) {
				t.Errorf("%T: Update gives %v, want %v", x, *p, x)
			}
			*p = zero
		})
		if v, isValue := v[1].(*Value[T]); isValue {
			if got, ok := v.TryLoad(); !ok || !reflect.DeepEqual(got, zero) {
				t.Errorf("%T: TryLoad gives %v, %v, want %v", x, got, ok, zero)
			}
		}
		frame := struct {
			before uint64
			x      T
			after  uint8
		}{1<<64 - 1, x, 1<<8 - 1}
		v[1].LoadTo(&frame.x)
		if !reflect.DeepEqual(frame.x, zero) || frame.before != 1<<64-1 || frame.after != 1<<8-1 {
			t.Errorf("%T: LoadTo changed its neighbours: %v", x, frame)
		}
	}
	for _, i := range []int{0, 2} {
		if got := v[i].Load(); !reflect.DeepEqual(got, zero) || v[i].Version() != 0 {
			t.Errorf("%T: the neighbour became %v", x, got)
		}
	}
}

// S8: a T with pointers, which the copy would hide from the garbage collector.
func TestFault_S8(t *testing.T) {
	type named struct {
		ID   int
		Name string
	}
	refuse[string](t, "string", "T ")
	refuse[[]byte](t, "[]uint8", "T ")
	refuse[map[int]int](t, "map[int]int", "T ")
	refuse[any](t, "interface {}", "T ")
	refuse[error](t, "error", "T ")
	refuse[*int](t, "*int", "T ")
	refuse[chan int](t, "chan int", "T ")
	refuse[func()](t, "func()", "T ")
	refuse[named](t, "seqlock.named", "T.Name ")
	refuse[[4]named](t, "[4]seqlock.named", "T[0].Name ")
	refuse[struct {
		a [2]uint8
		b struct{ c [1][3]named }
	}](t, "struct {", "T.b.c[0][0].Name ")
	refuse[time.Time](t, "time.Time", "T.loc ")
	refuse[atomic.Pointer[int]](t, "atomic.Pointer[int]", "T.v ")
}

// refuse checks that each method panics, again and again, and names path.
func refuse[T any](t *testing.T, typ, path string) {
	t.Helper()
	var v Value[T]
	var l Latch[T]
	var x T
	for range 2 {
		for name, use := range map[string]func(){
			"Value.Load":      func() { v.Load() },
			"Value.LoadTo":    func() { v.LoadTo(&x) },
			"Value.TryLoad":   func() { v.TryLoad() },
			"Value.Version":   func() { v.Version() },
			"Value.Store":     func() { v.Store(x) },
			"Value.StoreFrom": func() { v.StoreFrom(&x) },
			"Value.Update":    func() { v.Update(func(*T) {}) },
			"Latch.Load":      func() { l.Load() },
			"Latch.LoadTo":    func() { l.LoadTo(&x) },
			"Latch.Version":   func() { l.Version() },
			"Latch.Store":     func() { l.Store(x) },
			"Latch.StoreFrom": func() { l.StoreFrom(&x) },
			"Latch.Update":    func() { l.Update(func(*T) {}) },
		} {
			func() {
				defer func() {
					msg := fmt.Sprint(recover())
					holder, _, _ := strings.Cut(name, ".")
					if !strings.HasPrefix(msg, "seqlock: a "+holder+" cannot hold a "+typ) || !strings.Contains(msg, " "+path) {
						t.Errorf("%s of a %T: %q, want a panic that names %s and %q", name, x, msg, typ, path)
					}
				}()
				use()
			}()
		}
	}
	if !v.mu.TryLock() || v.seq.Load() != 0 || !l.mu.TryLock() || l.seq.Load() != 0 {
		t.Errorf("%T: a refused use left something behind", x)
	}
}
