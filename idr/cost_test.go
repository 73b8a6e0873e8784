package idr_test

import (
	"fmt"
	"math"
	"runtime"
	"strings"
	"testing"

	"github.com/quiesce-go/quiesce/idr"
	"github.com/quiesce-go/quiesce/internal/buildtest"
	"github.com/quiesce-go/quiesce/internal/patience"
)

func TestAllocations(t *testing.T) {
	x := filled(10_000)
	v := x.Find(0)
	far := []int{1 << 20, 1 << 30, math.MaxInt}
	for _, id := range far {
		x.Insert(id, v)
	}
	var one idr.IDR[object]
	for _, test := range []struct {
		name string
		f    func()
	}{
		{"Find", func() { sink = x.Find(5000) }},
		{"Find far", func() { sink = x.Find(far[1]) }},
		{"Find absent", func() { sink = x.Find(1 << 25) }},
		{"Next", func() { _, sink, _ = x.Next(9999) }},
		{"All", func() {
			for range x.All() {
			}
		}},
		{"Remove and Alloc", func() { x.Remove(77); x.Alloc(v) }},
		{"Alloc and Remove, of an empty IDR", func() { id, _ := one.Alloc(v); one.Remove(id) }},
		{"Insert and Remove", func() { x.Insert(10_000, v); x.Remove(10_000) }},
		{"Insert and Remove, far away", func() { x.Insert(far[1]+1, v); x.Remove(far[1] + 1) }},
		{"AllocFunc and Remove", func() {
			id, _ := x.AllocFunc(0, 20_000, func(int) *object { return v })
			x.Remove(id)
		}},
		{"Replace and CompareAndSwap", func() { x.Replace(5, nil); x.CompareAndSwap(5, nil, v) }},
		{"a failed AllocRange", func() { x.AllocRange(v, 0, 100) }},
		{"Len", func() { x.Len() }},
	} {
		if n := testing.AllocsPerRun(100, test.f); n != 0 {
			t.Errorf("%s: %v allocations", test.name, n)
		}
	}
	d := newDomain(t)
	if n := testing.AllocsPerRun(100, func() {
		id, _ := one.Alloc(v)
		one.RemoveRetire(d, id, nil)
	}); n > 1.5 { // each 64th makes a leaf
		t.Errorf("RemoveRetire: %v allocations", n)
	}
}

// heapOf returns the bytes of the heap that what f returns takes.
func heapOf(f func() any) int {
	var before, after runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&before)
	keep := f()
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&after)
	runtime.KeepAlive(keep)
	return int(after.HeapAlloc) - int(before.HeapAlloc)
}

// Bytes for an id: the tables of docs/idr.md.
func TestMemory(t *testing.T) {
	v := &objects()[0]
	fill := func(n, step int) func() any {
		return func() any {
			x := new(idr.IDR[object])
			for i := range n {
				if err := x.Insert(i*step, v); err != nil {
					t.Fatal(err)
				}
			}
			return x
		}
	}
	wide := math.MaxInt > math.MaxInt32
	sizes := []int{100_000, 524_289, 600_000, 1_000_000, 1 << 20}
	if testing.Short() {
		sizes = []int{100_000, 200_000}
	}
	for _, n := range sizes {
		per := float64(heapOf(fill(n, 1))) / float64(n)
		t.Logf("%d dense ids: %.2f bytes each", n, per)
		if per > 10 || !wide && per > 5.5 {
			t.Errorf("%d dense ids take %.2f bytes each", n, per)
		}
	}
	// Stats say what the heap says.
	for _, step := range []int{1, 64, 1000} {
		var x *idr.IDR[object]
		var s idr.Stats
		patience.Until(t, "Stats are what the heap says", func() (any, bool) { // beside what others have there for a moment
			x = nil
			bytes := heapOf(func() any { x = fill(20_000, step)().(*idr.IDR[object]); return x })
			s = x.Stats()
			return fmt.Sprintf("20,000 ids, each %dth: %+v, %d bytes of the heap", step, s, bytes), s.Bytes >= bytes*9/10-1000 && s.Bytes <= bytes
		})
		if want := (20_000*step + 63) / 64; step <= 64 && s.Leaves != want || step > 64 && s.Leaves != 20_000 {
			t.Errorf("20,000 ids, each %dth: %d leaves", step, s.Leaves)
		}
		for i := range 20_000 {
			x.Remove(i * step)
		}
		if s := x.Stats(); s.Leaves != 1 || s.Inner != 0 {
			t.Errorf("20,000 ids, each %dth, that were removed: %+v", step, s)
		}
	}
	if s := new(idr.IDR[object]).Stats(); s != (idr.Stats{}) {
		t.Errorf("the zero IDR: %+v", s)
	}
	for _, n := range []int{1, 64, 1000} {
		t.Logf("%d dense ids: %d bytes in all", n, heapOf(fill(n, 1)))
	}
	per := float64(heapOf(fill(20_000, 64))) / 20_000
	t.Logf("each 64th id: %.0f bytes each", per)
	if per > 650 {
		t.Errorf("each 64th id: %.0f bytes each", per)
	}
	per = float64(heapOf(func() any {
		x := new(idr.IDR[object])
		for i := range uint64(10_000) {
			x.Insert(int(i*lcgMul>>33), v) // 31 bits
		}
		return x
	})) / 10_000
	t.Logf("10,000 random ids of 31 bits: %.0f bytes each", per)
	if per > 1000 {
		t.Errorf("10,000 random ids of 31 bits: %.0f bytes each", per)
	}
	// Lone ids, wherever they are, and few ids with one far away.
	per = float64(heapOf(func() any {
		x := make([]idr.IDR[object], len(edges()))
		for i, id := range edges() {
			x[i].Insert(id, v)
		}
		return x
	})) / float64(len(edges()))
	t.Logf("an IDR of one id: %.0f bytes", per)
	if per > 1024 {
		t.Errorf("an IDR of one id: %.0f bytes", per)
	}
	per = float64(heapOf(func() any {
		x := make([]idr.IDR[object], len(edges()))
		for i, id := range edges() {
			x[i].Insert(0, v)
			x[i].Insert(id|1<<20, v)
		}
		return x
	})) / float64(len(edges()))
	t.Logf("an IDR of two ids that are far apart: %.0f bytes", per)
	if per > 2560 {
		t.Errorf("an IDR of two ids that are far apart: %.0f bytes", per)
	}
	n := sizes[len(sizes)-1]
	if bytes := heapOf(func() any {
		x := fill(n, 1)().(*idr.IDR[object])
		for i := range n {
			x.Remove(i)
		}
		return x
	}); bytes > n/2 {
		t.Errorf("%d bytes are left of %d ids", bytes, n)
	}
}

// findProbe shows what Find becomes where it is inlined.
//
//go:noinline
func findProbe(x *idr.IDR[object], id int) *object { return x.Find(id) }

func TestCompiled(t *testing.T) {
	sink = findProbe(filled(1), 0)
	// Platforms whose atomic loads are calls are the others.
	if runtime.GOARCH != "amd64" && runtime.GOARCH != "arm64" {
		t.Skipf("nobody looked at the code for %s", runtime.GOARCH)
	}
	buildtest.Inlined(t, ".", "(*IDR).Find")
	code := buildtest.Disassemble(t, ".", `idr_test\.findProbe$`)
	calls := strings.Count(code, "CALL") - strings.Count(code, "morestack")
	if calls != 1 {
		t.Errorf("%d calls, want one, of lookup:\n%s", calls, code)
	}
	if strings.Contains(code, "LOCK") || strings.Contains(code, "\tXCHG") {
		t.Errorf("a locked instruction in Find:\n%s", code)
	}
	if runtime.GOARCH == "amd64" {
		// The fast path: size, directory, slots, slot. The loads of the latter two, and no
		// other, have an index.
		if n := strings.Count(code, "*8), "); n != 2 {
			t.Errorf("%d indexed loads, want 2:\n%s", n, code)
		}
		put := buildtest.Disassemble(t, ".", `idr\.\(\*core\)\.remove$`)
		if strings.Contains(put, "\tXCHG") {
			t.Errorf("an exchange in remove:\n%s", put)
		}
		if !strings.Contains(put, "MOVQ $0x0, 0(") {
			t.Errorf("no store of nil in remove:\n%s", put)
		}
	}
}
