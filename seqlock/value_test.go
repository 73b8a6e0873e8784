package seqlock

import (
	"os/exec"
	"reflect"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"unsafe"
)

type point struct {
	x, y float64
	n    uint16
}

func TestValue(t *testing.T) { testCell(t, newValue[point]) }
func TestLatch(t *testing.T) { testCell(t, newLatch[point]) }

func testCell(t *testing.T, newCell func() cell[point]) {
	v := newCell()
	want := func(p point, version uint64) {
		t.Helper()
		if got := v.Load(); got != p {
			t.Errorf("Load = %v, want %v", got, p)
		}
		to := point{-1, -1, 1}
		if v.LoadTo(&to); to != p {
			t.Errorf("LoadTo gives %v, want %v", to, p)
		}
		if v, isValue := v.(*Value[point]); isValue {
			if got, ok := v.TryLoad(); got != p || !ok {
				t.Errorf("TryLoad = %v, %v, want %v", got, ok, p)
			}
		}
		if got := v.Version(); got != version {
			t.Errorf("Version = %d, want %d", got, version)
		}
	}
	want(point{}, 0)
	v.Store(point{1, 2, 3})
	want(point{1, 2, 3}, 1)
	v.Update(func(p *point) {
		if *p != (point{1, 2, 3}) {
			t.Errorf("Update gives %v", *p)
		}
		p.x, p.n = 10, 30
		want(point{1, 2, 3}, 1) // nobody sees it yet
	})
	want(point{10, 2, 30}, 2)
	v.Update(func(*point) {})
	want(point{10, 2, 30}, 3)
	v.Store(point{})
	want(point{}, 4)
	from := point{4, 5, 6}
	v.StoreFrom(&from)
	from.x = 0
	want(point{4, 5, 6}, 5)
}

// TestValue_FirstUse and TestLatch_FirstUse begin with each method in turn.
func TestValue_FirstUse(t *testing.T) {
	testFirstUse(t, func() (cell[int32], func() uint64) {
		v := new(Value[int32])
		return v, func() uint64 { return v.seq.Load() & states }
	}, open)
	var v Value[int32]
	if x, ok := v.TryLoad(); x != 0 || !ok || v.seq.Load()&states != open {
		t.Errorf("TryLoad: %d, %v, state %02b", x, ok, v.seq.Load()&states)
	}
}

func TestLatch_FirstUse(t *testing.T) {
	testFirstUse(t, func() (cell[int32], func() uint64) {
		l := new(Latch[int32])
		return l, func() uint64 { return l.seq.Load() & (checked | writing) }
	}, checked)
}

func testFirstUse(t *testing.T, newCell func() (v cell[int32], state func() uint64), ready uint64) {
	for name, use := range map[string]func(v cell[int32]) int32{
		"Load":      func(v cell[int32]) int32 { return v.Load() },
		"LoadTo":    func(v cell[int32]) (x int32) { v.LoadTo(&x); return x },
		"Version":   func(v cell[int32]) int32 { return int32(v.Version()) },
		"Store":     func(v cell[int32]) int32 { v.Store(7); return v.Load() - 7 },
		"StoreFrom": func(v cell[int32]) int32 { x := int32(7); v.StoreFrom(&x); return v.Load() - 7 },
		"Update":    func(v cell[int32]) int32 { v.Update(func(x *int32) { *x += 7 }); return v.Load() - 7 },
	} {
		v, state := newCell()
		if got := use(v); got != 0 {
			t.Errorf("%s: %d, want 0", name, got)
		}
		if s := state(); s != ready {
			t.Errorf("%s leaves state %02b", name, s)
		}
	}
}

func TestValue_Update_LeavesByPanicOrGoexit(t *testing.T) { testLeaves(t, newValue[point]) }

// For a Latch this is fact 4 of latch.
func TestLatch_Update_LeavesByPanicOrGoexit(t *testing.T) { testLeaves(t, newLatch[point]) }

func testLeaves(t *testing.T, newCell func() cell[point]) {
	v := newCell()
	v.Store(point{1, 2, 3})
	for name, leave := range map[string]func(){
		"panic":  func() { panic("leave") },
		"Goexit": runtime.Goexit,
	} {
		done := make(chan struct{})
		go func() {
			defer close(done)
			defer func() {
				if r := recover(); (r != nil) != (name == "panic") {
					t.Errorf("%s: recovered %v", name, r)
				}
			}()
			v.Update(func(p *point) {
				*p = point{9, 9, 9}
				leave()
			})
		}()
		<-done
		if v.Load() != (point{1, 2, 3}) || v.Version() != 1 {
			t.Errorf("after %s: %v, version %d; want the value and version from before", name, v.Load(), v.Version())
		}
	}
	v.Update(func(p *point) { // nothing is left locked, nothing of 9 is left
		if *p != (point{1, 2, 3}) {
			t.Errorf("next Update gives %v", *p)
		}
		p.n++
	})
	v.Store(v.Load())
	if v.Load() != (point{1, 2, 4}) || v.Version() != 3 {
		t.Errorf("got %v, version %d", v.Load(), v.Version())
	}
}

// TestValue_Nil and TestLatch_Nil pass nil to what takes a *T: the panic must come
// before anything is owned or written.
func TestValue_Nil(t *testing.T) {
	testNil(t, newValue[point])
	// Without that, a Value stays in state 10.
	var v Value[point]
	v.Store(point{1, 2, 3})
	nilFaults(t, "store", func() { anyStore(&v.head, (*point)(nil), unsafe.Sizeof(point{})) })
	if _, ok := v.TryLoad(); ok {
		t.Error("store with a nil src leaves nothing behind: no need for StoreFrom to look at it")
	}
}

func TestLatch_Nil(t *testing.T) {
	testNil(t, newLatch[point])
	var l Latch[point]
	l.Store(point{1, 2, 3})
	nilFaults(t, "writeLatch", func() {
		anyWriteLatch(&l.latch, (*point)(nil), unsafe.Sizeof(point{}), unsafe.Sizeof(l.halves[0]))
	})
	if l.seq.Load()&writing == 0 {
		t.Error("writeLatch with a nil src leaves nothing behind: no need for StoreFrom to look at it")
	}
}

func testNil(t *testing.T, newCell func() cell[point]) {
	v := newCell()
	for version := range uint64(3) { // a new one first
		nilFaults(t, "LoadTo", func() { v.LoadTo(nil) })
		nilFaults(t, "StoreFrom", func() { v.StoreFrom(nil) })
		nilFaults(t, "Update", func() { v.Update(nil) })
		if got := v.Version(); got != version {
			t.Errorf("%T: version %d after misuse, want %d", v, got, version)
		}
		x := point{1, 2, uint16(version)}
		v.StoreFrom(&x)
		if got := v.Load(); got != x {
			t.Errorf("%T: %v after misuse, want %v", v, got, x)
		}
	}
	v.Update(func(p *point) { p.n++ }) // nothing is left locked
	if got := v.Load(); got != (point{1, 2, 3}) {
		t.Errorf("%T: %v after misuse", v, got)
	}
}

// nilFaults checks that f panics as a use of a nil pointer does.
func nilFaults(t *testing.T, name string, f func()) {
	t.Helper()
	defer func() {
		t.Helper()
		if err, ok := recover().(runtime.Error); !ok || !strings.Contains(err.Error(), "nil pointer") {
			t.Errorf("%s of nil: recovered %v", name, err)
		}
	}()
	f()
}

// TestValue_Version has one byte value for each version, so every read tells
// which write it saw, and the versions around it which ones it may have seen.
func TestValue_Version(t *testing.T) {
	hammer(t, newValue, func(x *[1]byte) []byte { return x[:] })
	hammer(t, newValue, func(x *[3]byte) []byte { return x[:] })
	hammer(t, newValue, func(x *[16]byte) []byte { return x[:] })
	hammer(t, newValue, func(x *[24]byte) []byte { return x[:] })
	hammer(t, newValue, func(x *[64]byte) []byte { return x[:] })
	hammer(t, newValue, func(x *[100]byte) []byte { return x[:] })
	hammer(t, newValue, func(x *[256]byte) []byte { return x[:] })
	hammer(t, newValue, func(x *[1024]byte) []byte { return x[:] })
}

// TestLatch_Version is the same for a Latch.
func TestLatch_Version(t *testing.T) {
	hammer(t, newLatch, func(x *[1]byte) []byte { return x[:] })
	hammer(t, newLatch, func(x *[24]byte) []byte { return x[:] })
	hammer(t, newLatch, func(x *[64]byte) []byte { return x[:] })
	hammer(t, newLatch, func(x *[1024]byte) []byte { return x[:] })
}

// A cell is a Value or a Latch.
type cell[T any] interface {
	Load() T
	LoadTo(*T)
	Version() uint64
	Store(T)
	StoreFrom(*T)
	Update(func(*T))
}

func newValue[T any]() cell[T] { return new(Value[T]) }
func newLatch[T any]() cell[T] { return new(Latch[T]) }

func hammer[T any](t *testing.T, newCell func() cell[T], bytes func(x *T) []byte) {
	reads := 5000
	if testing.Short() {
		reads = 200
	}
	size := len(bytes(new(T)))
	for readers := 1; readers <= 4; readers++ {
		for _, procs := range [][]int{{1, 2}, {2}, {2 * runtime.NumCPU()}, {1, 2}}[readers-1] {
			func() {
				defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(procs))
				var (
					v       = newCell()
					stop    atomic.Bool
					writers sync.WaitGroup
					wg      sync.WaitGroup
				)
				// Two that add by Update: none may be lost.
				var updates atomic.Uint64
				for range 2 {
					writers.Go(func() {
						for !stop.Load() {
							v.Update(func(x *T) {
								for i, p := 0, bytes(x); i < size; i++ {
									p[i]++
								}
							})
							updates.Add(1)
						}
					})
				}
				for range readers {
					wg.Go(func() {
						var x T
						p := bytes(&x)
						for i := range reads {
							before := v.Version()
							switch i % 3 {
							case 0:
								x = v.Load()
							case 1:
								v.LoadTo(&x)
							case 2:
								v, isValue := v.(*Value[T])
								if !isValue {
									continue
								}
								var ok bool
								if x, ok = v.TryLoad(); !ok {
									continue
								}
							}
							after := v.Version()
							for _, b := range p {
								if b != p[0] {
									t.Errorf("%d bytes, %d readers: torn: %v", size, readers, p)
									return
								}
							}
							if d := uint64(p[0] - byte(before)); d > after-before {
								t.Errorf("%d bytes, %d readers: between versions %d and %d, saw version %d", size, readers, before, after, before+d)
								return
							}
						}
					})
				}
				wg.Wait()
				stop.Store(true)
				writers.Wait()
				if got := v.Version(); got != updates.Load() {
					t.Errorf("%d bytes: version %d after %d updates", size, got, updates.Load())
				}
				x := v.Load()
				if b := bytes(&x)[0]; b != byte(updates.Load()) {
					t.Errorf("%d bytes: %d after %d updates", size, b, updates.Load())
				}
			}()
		}
	}
}

// TestValue_StoreBesideUpdate mixes the writer that takes seq alone with those
// that take mu too: an Update must not lose a Store or be lost.
func TestValue_StoreBesideUpdate(t *testing.T) {
	n := 100_000
	if testing.Short() {
		n = 5000
	}
	type pair struct{ stores, updates uint64 }
	var (
		v       Value[pair]
		stored  atomic.Uint64 // what the last Store stored, at least
		wg      sync.WaitGroup
		updates int
	)
	wg.Go(func() {
		for i := range n {
			v.Store(pair{stores: uint64(i + 1)})
			stored.Store(uint64(i + 1))
		}
	})
	wg.Go(func() {
		for range n {
			least := stored.Load()
			v.Update(func(p *pair) {
				if p.stores < least {
					t.Errorf("Update sees store %d after %d had returned", p.stores, least)
				}
				p.updates++
			})
			updates++
		}
	})
	wg.Wait()
	if got := v.Version(); got != uint64(2*n) {
		t.Errorf("version %d after %d writes", got, 2*n)
	}
	if p := v.Load(); p.stores != uint64(n) || p.updates > uint64(n) {
		t.Errorf("last value %v", p)
	}
}

// TestValue_LoadBesideUpdate checks that readers do not wait for the function
// of an Update, not even the ones that have given up on trying.
func TestValue_LoadBesideUpdate(t *testing.T) {
	var v Value[[8]uint64]
	v.Store([8]uint64{1})
	v.Update(func(x *[8]uint64) {
		x[0] = 2
		done := make(chan struct{})
		go func() {
			defer close(done)
			for range 1000 {
				if v.Load()[0] != 1 {
					t.Error("Load sees a value that Update has not made yet")
				}
				if _, ok := v.TryLoad(); !ok {
					t.Error("TryLoad fails beside an Update's function")
				}
			}
		}()
		<-done
	})
}

// TestValue_SlowPathMovesStack has the assembly jump to Go code that needs more
// stack, at many depths, while the garbage collector runs.
func TestValue_SlowPathMovesStack(t *testing.T) {
	stop := make(chan struct{})
	var gc sync.WaitGroup
	gc.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				runtime.GC()
			}
		}
	})
	var wg sync.WaitGroup
	for depth := range 300 {
		wg.Go(func() { deep(t, depth) })
	}
	wg.Wait()
	close(stop)
	gc.Wait()
}

//go:noinline
func deep(t *testing.T, depth int) (sum uint64) {
	var pad [3]uint64
	if depth > 0 {
		return pad[depth%3] + deep(t, depth-1)
	}
	var a, b, c Value[[5]uint64]
	if got := a.Load(); got != ([5]uint64{}) {
		t.Errorf("first Load = %v", got)
	}
	x := [5]uint64{1, 2, 3, 4, 5}
	b.Store(x)
	var y [5]uint64
	if b.LoadTo(&y); y != x {
		t.Errorf("LoadTo after the first Store gives %v", y)
	}
	c.Update(func(p *[5]uint64) { *p = x })
	var d Value[[5]uint64]
	if d.StoreFrom(onlyHere(x)); d.Load() != x {
		t.Errorf("StoreFrom as the first use gives %v", d.Load())
	}
	var e Value[[4]uint64]
	if got := e.Load(); got != ([4]uint64{}) {
		t.Errorf("first Load of a few words = %v", got)
	}
	var l Latch[[5]uint64]
	if l.LoadTo(&y); y != ([5]uint64{}) {
		t.Errorf("first LoadTo of a Latch gives %v", y)
	}
	return c.Load()[4] + pad[0]
}

// onlyHere returns a pointer to an x on the heap, for a caller that keeps no other one.
//
//go:noinline
func onlyHere(x [5]uint64) *[5]uint64 { return &x }

func TestValue_NoAllocation(t *testing.T) {
	valueNoAllocation(t, [2]uint64{1}, func(p *[2]uint64) { p[0]++ })
	valueNoAllocation(t, [8]uint64{1}, func(p *[8]uint64) { p[0]++ })
}

func valueNoAllocation[T any](t *testing.T, x T, add func(*T)) {
	t.Helper()
	var (
		v, fresh Value[T]
		version  uint64
	)
	v.Update(add) // allocates its private copy
	for name, f := range map[string]func(){
		"slow Load": func() { fresh.seq.Store(0); x = fresh.Load() },
		"Load":      func() { x = v.Load() },
		"LoadTo":    func() { v.LoadTo(&x) },
		"TryLoad":   func() { x, _ = v.TryLoad() },
		"Version":   func() { version = v.Version() },
		"Store":     func() { v.Store(x) },
		"StoreFrom": func() { v.StoreFrom(&x) },
		"Update":    func() { v.Update(add) },
	} {
		if n := testing.AllocsPerRun(100, f); n != 0 {
			t.Errorf("%T: %s allocates %v times", x, name, n)
		}
	}
	if version == 0 {
		t.Errorf("%T: version 0 after an Update", x)
	}
}

// TestValue_Layout checks what value_unsafe.go says of it.
func TestValue_Layout(t *testing.T) {
	for _, typ := range []reflect.Type{
		reflect.TypeFor[Value[struct{}]](),
		reflect.TypeFor[Value[byte]](),
		reflect.TypeFor[Value[[3]byte]](),
		reflect.TypeFor[Value[int32]](),
		reflect.TypeFor[Value[complex128]](),
		reflect.TypeFor[Value[[5]uint64]](),
		reflect.TypeFor[Value[struct {
			b byte
			u uint64
		}]](),
	} {
		head, _ := typ.FieldByName("head")
		val, _ := typ.FieldByName("val")
		end := val.Offset + (val.Type.Size()+7)&^7
		if val.Offset != head.Offset+head.Type.Size() || val.Offset%8 != 0 || typ.Align() != 8 {
			t.Errorf("%v: head of %d bytes at %d, T at %d, alignment %d", typ, head.Type.Size(), head.Offset, val.Offset, typ.Align())
		}
		if head.Offset < line || end+line > typ.Size() {
			t.Errorf("%v: head at %d, T's last word ends at %d of %d: less than a cache line to the neighbours", typ, head.Offset, end, typ.Size())
		}
	}
}

// TestLoad_KeepsWritersOut has a reader that can never succeed without.
func TestLoad_KeepsWritersOut(t *testing.T) {
	var r raw
	type words [128]uint64
	r.use(&r.buf)
	var stop atomic.Bool
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() {
			for i := uint64(0); !stop.Load(); i++ {
				x := words(splat(i))
				anyStore(&r.head, &x, maxSize)
			}
		})
	}
	for range 1000 {
		s := r.seq.Load()
		if !r.own(s) {
			continue
		}
		var x, y words
		if !tryLoad(&r.head, unsafe.Pointer(&x), maxSize) || !tryLoad(&r.head, unsafe.Pointer(&y), maxSize) || x != y {
			t.Error("somebody wrote while the reader owned the Value")
		}
		if got := r.seq.Load(); got != s|owned {
			t.Errorf("seq went from %b to %b while the reader owned it", s|owned, got)
		}
		r.disown()
	}
	stop.Store(true)
	wg.Wait()
}

// TestCopyIsVetted has vet look at a package that copies each type.
func TestCopyIsVetted(t *testing.T) {
	gocmd, err := exec.LookPath("go")
	if err != nil {
		t.Skipf("needs the go command to run vet: %v", err)
	}
	out, err := exec.Command(gocmd, "vet", "./testdata/copies").CombinedOutput()
	if err == nil {
		t.Fatal("vet has nothing to say about copies")
	}
	for _, typ := range []string{"Count", "Lock", "Value[int]", "Latch[int]"} {
		if !strings.Contains(string(out), "copies lock value") || !strings.Contains(string(out), "quiesce/seqlock."+typ) {
			t.Errorf("vet does not report the copy of a %s:\n%s", typ, out)
		}
	}
}
