package idr_test

import (
	"math"
	"slices"
	"testing"

	"github.com/quiesce-go/quiesce/idr"
)

// Behaviours that the test suites of the kernel's idr and xarray look for, as far as they are not
// tested elsewhere. What is a base there is the min of a range here.

func TestSuite_Cyclic(t *testing.T) {
	var x idr.IDR[int]
	v := new(int)
	alloc := func(want, min, max int) {
		t.Helper()
		id, err := x.AllocCyclic(v, min, max)
		wantID(t, want, id, err)
	}
	const start, end = 0x1ffd, 0x1fff
	alloc(0, 0, end)
	alloc(start, start, end)
	x.Remove(start)
	x.Remove(0)
	alloc(start+1, start, end)
	alloc(start+2, start, end)
	alloc(start, start, end) // wraps to start, not to 0
	id, err := x.AllocCyclic(v, start, end)
	wantErr(t, idr.ErrFull, id, err)

	// The top: four ids, then from the bottom, without an error.
	x.Clear()
	alloc(math.MaxInt-4, math.MaxInt-4, math.MaxInt)
	for _, want := range []int{math.MaxInt - 3, math.MaxInt - 2, math.MaxInt - 1, math.MaxInt, 0, 1, 2} {
		alloc(want, 0, math.MaxInt)
	}
}

// An id is not found at its alias with one bit less or more.
func TestSuite_Edges(t *testing.T) {
	v := new(int)
	ids := append(edges(), 10, 0x7fffff01, 0x3fffff01)
	if math.MaxInt > math.MaxInt32 {
		ids = append(ids, math.MaxInt&0xffe00000, math.MaxInt&0xffffffff)
	}
	for _, base := range []int{0, 1, 4} {
		for _, id := range ids {
			if id < base {
				continue
			}
			var x idr.IDR[int]
			got, err := x.AllocRange(v, id, id)
			wantID(t, id, got, err)
			got, err = x.AllocRange(v, id, id)
			wantErr(t, idr.ErrFull, got, err)
			for bit := range 64 {
				if other := int(uint64(id) ^ 1<<bit); other != id && x.Find(other) != nil {
					t.Fatalf("%#x is found at %#x", id, other)
				}
			}
			got, err = x.AllocRange(v, base, id)
			if id == base {
				wantErr(t, idr.ErrFull, got, err)
			} else {
				wantID(t, base, got, err)
				x.Remove(base)
			}
			wantIDs(t, &x, id)
			if x.Remove(id) != v || x.Len() != 0 {
				t.Errorf("Remove(%#x)", id)
			}
			wantIDs(t, &x)
		}
	}
}

func TestSuite_TopRange(t *testing.T) {
	var x idr.IDR[int]
	v := new(int)
	for i := range 4 {
		id, err := x.AllocRange(v, math.MaxInt-3, math.MaxInt)
		wantID(t, math.MaxInt-3+i, id, err)
	}
	id, err := x.AllocRange(v, math.MaxInt-3, math.MaxInt)
	wantErr(t, idr.ErrFull, id, err)
	id, err = x.AllocCyclic(v, math.MaxInt-3, math.MaxInt)
	wantErr(t, idr.ErrFull, id, err)
	wantIDs(t, &x, math.MaxInt-3, math.MaxInt-2, math.MaxInt-1, math.MaxInt)
	id, err = x.AllocRange(v, math.MaxInt-4, math.MaxInt)
	wantID(t, math.MaxInt-4, id, err)
	if _, _, ok := x.Next(math.MaxInt); !ok {
		t.Error("Next(MaxInt)")
	}
	x.Remove(math.MaxInt)
	if _, _, ok := x.Next(math.MaxInt); ok {
		t.Error("Next(MaxInt) after its removal")
	}
}

// Remove of what is not there is harmless: in an empty tree, in a full leaf, above the top.
func TestSuite_RemoveAbsent(t *testing.T) {
	var x idr.IDR[int]
	v := new(int)
	for n := range 200 {
		for _, id := range []int{n, n + 1, n + 63, 1 << 30, math.MaxInt, -1} {
			if x.Remove(id) != nil {
				t.Fatalf("Remove(%d) of %d", id, n)
			}
		}
		if x.Len() != n {
			t.Fatalf("Len is %d, want %d", x.Len(), n)
		}
		x.Alloc(v)
	}
	idr.Check(&x)
}

// From min 1 on, 0 is never given out.
func TestSuite_Base(t *testing.T) {
	var x idr.IDR[int]
	v := new(int)
	for want := 1; want < 200; want++ {
		id, err := x.AllocRange(v, 1, math.MaxInt)
		wantID(t, want, id, err)
	}
	id, err := x.AllocRange(v, 0, 1)
	wantID(t, 0, id, err)
	x.Remove(1)
	id, err = x.AllocRange(v, 1, 2)
	wantID(t, 1, id, err)
	id, err = x.AllocRange(v, 0, 2)
	wantErr(t, idr.ErrFull, id, err)
}

// While 1024 ids are inserted and removed in order, just those are there that should be.
func TestSuite_Prefix(t *testing.T) {
	var x idr.IDR[int]
	v := new(int)
	const n = 1024
	check := func(from, to int) {
		for i := range n + 64 {
			if (x.Find(i) != nil) != (from <= i && i < to) {
				t.Fatalf("id %d, with ids from %d to %d", i, from, to)
			}
		}
	}
	for i := range n {
		check(0, i)
		x.Insert(i, v)
	}
	for i := range n {
		check(i, n)
		x.Remove(i)
	}
	check(n, n)
	idr.Check(&x)
}

// Each pair of ids, found from each start.
func TestSuite_Pairs(t *testing.T) {
	v := new(int)
	step := 1
	if testing.Short() {
		step = 7
	}
	for a := 0; a < 100; a += step {
		for b := a + 1; b < 100; b += step {
			var x idr.IDR[int]
			x.Insert(a, v)
			x.Insert(b, v)
			for start := range 102 {
				id, _, ok := x.Next(start)
				want := a
				if start > a {
					want = b
				}
				if ok != (start <= b) || ok && id != want {
					t.Fatalf("Next(%d) of %d and %d: %d, %v", start, a, b, id, ok)
				}
			}
		}
	}
}

// A tree that grows from one id to the top and shrinks again, with every power of two.
func TestSuite_GrowShrink(t *testing.T) {
	v := new(int)
	for bit := range 63 {
		if uint64(1)<<bit > math.MaxInt {
			break
		}
		for _, id := range []int{1 << bit, 1<<bit - 1, math.MaxInt} {
			var x idr.IDR[int]
			x.Insert(0, v)
			if id != 0 {
				x.Insert(id, v)
				wantIDs(t, &x, 0, id)
				if x.Find(id-1) != nil && id > 1 || id < math.MaxInt && x.Find(id+1) != nil {
					t.Errorf("a neighbour of %#x is found", id)
				}
				x.Remove(id)
			}
			wantIDs(t, &x, 0)
			x.Remove(0)
			wantIDs(t, &x)
		}
	}
}

// Stepping through 65,536 ids with a hole.
func TestSuite_Hole(t *testing.T) {
	var x idr.IDR[int]
	v := new(int)
	var want []int
	for i := range 1 << 16 {
		if i < 256 || i >= 1<<15 {
			x.Insert(i, v)
			want = append(want, i)
		}
	}
	wantIDs(t, &x, want...)
	id, err := x.Alloc(v)
	wantID(t, 256, id, err)
	id, err = x.AllocRange(v, 0, 255)
	wantErr(t, idr.ErrFull, id, err)
	id, err = x.AllocRange(v, 300, 1<<16-1)
	wantID(t, 300, id, err)
}

// Just one leaf is filled and removed, at ids where the depth of the tree is another.
func TestSuite_OneLeaf(t *testing.T) {
	v := new(int)
	for _, min := range []int{0, 64, 1024, 4096, 65536, 1 << 18, 1 << 24, 1 << 30} {
		var x idr.IDR[int]
		for i := range 64 {
			id, err := x.AllocRange(v, min, math.MaxInt)
			wantID(t, min+i, id, err)
		}
		idr.Check(&x)
		x.Clear()
		id, err := x.Alloc(v)
		wantID(t, 0, id, err)
	}
}

// Just below 2^31, which is the top where an int has 32 bits.
func TestSuite_Below31(t *testing.T) {
	v := new(int)
	for j := 1; j <= 65536; j *= 2 {
		var x idr.IDR[int]
		min := math.MaxInt32 - j + 1
		for i := range j {
			id, err := x.AllocRange(v, min, math.MaxInt32)
			wantID(t, min+i, id, err)
		}
		id, err := x.AllocRange(v, min, math.MaxInt32)
		wantErr(t, idr.ErrFull, id, err)
		idr.Check(&x)
	}
}

// Freed ids are given out again lowest first, whatever the order they were freed in.
func TestSuite_Gaps(t *testing.T) {
	var x idr.IDR[int]
	v := new(int)
	for range 30 {
		x.Alloc(v)
	}
	for _, gaps := range [][]int{{20, 21}, {21, 20}, {29, 0, 15}} {
		for _, id := range gaps {
			x.Remove(id)
		}
		slices.Sort(gaps)
		for _, want := range append(gaps, 30) {
			id, err := x.Alloc(v)
			wantID(t, want, id, err)
		}
		x.Remove(30)
	}
}

// An iteration that is left and begun again where it was loses nothing, and repeats nothing, also at
// the top.
func TestSuite_Resume(t *testing.T) {
	var x idr.IDR[int]
	v := new(int)
	want := []int{0, 1, 62, 63, 64, 4095, 4096, 1 << 20, math.MaxInt - 1, math.MaxInt}
	for _, id := range want {
		x.Insert(id, v)
	}
	for steps := 1; steps < 4; steps++ {
		var got []int
		for from, more := 0, true; more; {
			n := 0
			more = false
			for id := range x.From(from) {
				if n == steps {
					more = true
					break
				}
				n++
				got = append(got, id)
				from = id + 1 // at the top this is negative, and nothing is left
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%d at a time: %v, want %v", steps, got, want)
		}
	}
}

// An IDR with one id, wherever it is, is cleared, and used again from the beginning.
func TestSuite_ClearOne(t *testing.T) {
	v := new(int)
	ids := edges()
	for id := range 1000 {
		ids = append(ids, id)
	}
	for _, id := range ids {
		var x idr.IDR[int]
		x.Insert(id, v)
		if old, err := x.Replace(id^1, v); id^1 >= 0 && (old != nil || err != idr.ErrNotFound) {
			t.Errorf("Replace(%d) beside %d: %v, %v", id^1, id, old, err)
		}
		for range 2 {
			x.Clear()
			wantIDs(t, &x)
			if _, err := x.Replace(id, v); err != idr.ErrNotFound || x.CompareAndSwap(id, nil, v) {
				t.Errorf("Replace(%d) after Clear: %v", id, err)
			}
		}
		got, err := x.Alloc(v)
		wantID(t, 0, got, err)
		idr.Check(&x)
	}
}

// What was inserted is used: allocation goes around it.
func TestSuite_Around(t *testing.T) {
	var x idr.IDR[int]
	v := new(int)
	for _, id := range []int{1, 3, 64, 65} {
		x.Insert(id, v)
	}
	for want := range 70 {
		switch want {
		case 1, 3, 64, 65:
			continue
		}
		id, err := x.Alloc(v)
		wantID(t, want, id, err)
	}
	// What is taken and given back in bulk leaves nothing behind.
	for range 3 {
		for range 1000 {
			x.Alloc(v)
		}
		x.Clear()
		id, err := x.AllocRange(v, 1, math.MaxInt)
		wantID(t, 1, id, err)
		x.Clear()
	}
}
