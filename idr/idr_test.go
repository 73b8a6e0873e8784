package idr_test

import (
	"errors"
	"fmt"
	"math"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/quiesce-go/quiesce/idr"
	"github.com/quiesce-go/quiesce/rcu"
)

// A thing knows its id, so that a test sees when it got another one's.
type thing struct {
	id   int
	dead bool
}

// wantID fails the test if an allocation did not give id.
func wantID(t *testing.T, want, id int, err error) {
	t.Helper()
	if err != nil || id != want {
		t.Fatalf("got %d, %v, want %d", id, err, want)
	}
}

// wantErr fails the test if an allocation did not fail with err.
func wantErr(t *testing.T, want error, id int, err error) {
	t.Helper()
	if err != want || id != 0 {
		t.Fatalf("got %d, %v, want %v", id, err, want)
	}
}

// wantIDs fails the test if the entries of x do not have just these ids, whichever way it is asked.
func wantIDs[T any](t *testing.T, x *idr.IDR[T], want ...int) {
	t.Helper()
	var got []int
	for id, v := range x.All() {
		if v == nil || x.Find(id) != v {
			t.Fatalf("id %d: All gives %p, Find %p", id, v, x.Find(id))
		}
		got = append(got, id)
	}
	if !slices.Equal(got, want) {
		t.Fatalf("All gives %v, want %v", got, want)
	}
	got = nil
	for id, v, ok := x.Next(-1); ok; id, v, ok = x.Next(id + 1) {
		if x.Find(id) != v {
			t.Fatalf("id %d: Next gives %p, Find %p", id, v, x.Find(id))
		}
		if got = append(got, id); id == math.MaxInt {
			break
		}
	}
	if !slices.Equal(got, want) {
		t.Fatalf("Next gives %v, want %v", got, want)
	}
	idr.Check(x)
}

func newDomain(t testing.TB) *rcu.Domain {
	d := rcu.New()
	t.Cleanup(func() {
		if err := d.Close(t.Context()); err != nil && !errors.Is(err, rcu.ErrClosed) && t.Context().Err() == nil {
			t.Error(err)
		}
	})
	return d
}

// edges are ids at which something changes: levels of the tree, the sizes of machine words.
func edges() []int {
	ids := []int{0, 1, 2, 63, 64, 65, 127, 128, math.MaxInt, math.MaxInt - 1, math.MaxInt - 63, math.MaxInt - 64}
	for shift := 2; shift < 63; shift++ {
		if id := uint64(1) << shift; shift%6 == 0 || shift >= 31 {
			for _, id := range []uint64{id - 1, id, id + 1} {
				if id <= math.MaxInt {
					ids = append(ids, int(id))
				}
			}
		}
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}

func TestZero(t *testing.T) {
	var x idr.IDR[int]
	for _, id := range append(edges(), -1, math.MinInt) {
		if x.Find(id) != nil || x.Remove(id) != nil || x.CompareAndSwap(id, nil, new(int)) {
			t.Errorf("an empty IDR has something at %d", id)
		}
		if old, err := x.Replace(id, new(int)); old != nil || err != idr.ErrNotFound {
			t.Errorf("Replace of %d: %v, %v", id, old, err)
		}
		if _, _, ok := x.Next(id); ok {
			t.Errorf("Next(%d) found something", id)
		}
	}
	wantIDs(t, &x)
	x.Clear()
	x.Clear()
	if x.Len() != 0 {
		t.Error(x.Len())
	}
}

func TestAlloc_LowestFirst(t *testing.T) {
	var x idr.IDR[thing]
	const n = 10_000
	for i := range n {
		id, err := x.Alloc(&thing{id: i})
		wantID(t, i, id, err)
	}
	for _, id := range []int{7777, 63, 4096, 64, 0, n - 1} {
		if v := x.Remove(id); v == nil || v.id != id {
			t.Fatalf("Remove(%d) = %v", id, v)
		}
		if x.Remove(id) != nil || x.Find(id) != nil {
			t.Fatalf("%d is still there", id)
		}
	}
	for _, want := range []int{0, 63, 64, 4096, 7777, n - 1, n} {
		id, err := x.Alloc(&thing{id: want})
		wantID(t, want, id, err)
	}
	if x.Len() != n+1 {
		t.Errorf("Len is %d", x.Len())
	}
	idr.Check(&x)
}

func TestAllocRange(t *testing.T) {
	var x idr.IDR[int]
	v := new(int)
	refuse := func() {
		t.Helper()
		for _, r := range [][2]int{{-1, 5}, {5, 4}, {10, 5}, {math.MinInt, math.MaxInt}, {math.MaxInt, 0}, {-5, -3}} {
			id, err := x.AllocRange(v, r[0], r[1])
			wantErr(t, idr.ErrRange, id, err)
			id, err = x.AllocCyclic(v, r[0], r[1])
			wantErr(t, idr.ErrRange, id, err)
			id, err = x.AllocFunc(r[0], r[1], func(int) *int { t.Error("build was called"); return v })
			wantErr(t, idr.ErrRange, id, err)
		}
	}
	refuse()
	wantIDs(t, &x)
	for _, want := range edges() {
		id, err := x.AllocRange(v, want, want)
		wantID(t, want, id, err)
		id, err = x.AllocRange(v, want, want)
		wantErr(t, idr.ErrFull, id, err)
	}
	refuse() // also where there are ids
	wantIDs(t, &x, edges()...)
	if x.Len() != len(edges()) {
		t.Error(x.Len())
	}
	for _, id := range edges() {
		if x.Remove(id) != v {
			t.Errorf("Remove(%d)", id)
		}
	}
	wantIDs(t, &x)
	if x.Len() != 0 {
		t.Error(x.Len())
	}
}

// A range in the middle of a full table, then an id of it after the other.
func TestAllocRange_Full(t *testing.T) {
	var x idr.IDR[int]
	v := new(int)
	const n = 300_000 // more than fills an inner node with the third level
	for range n {
		if _, err := x.Alloc(v); err != nil {
			t.Fatal(err)
		}
	}
	idr.Check(&x)
	id, err := x.AllocRange(v, 5, n-1)
	wantErr(t, idr.ErrFull, id, err)
	for _, want := range []int{262143, 262144, 4095, 64, 63, 5, n - 1} {
		x.Remove(want)
		id, err := x.AllocRange(v, 5, n-1)
		wantID(t, want, id, err)
	}
	x.Remove(4)
	id, err = x.AllocRange(v, 5, n-1)
	wantErr(t, idr.ErrFull, id, err)
	// The search goes from here to there, over everything between.
	for _, there := range []int{n - 1, 262144, 262143, 4096, 70, 6} {
		x.Remove(there)
		id, err = x.AllocRange(v, 5, n-1)
		wantID(t, there, id, err)
	}
	id, err = x.AllocRange(v, 5, n)
	wantID(t, n, id, err)
	id, err = x.Alloc(v)
	wantID(t, 4, id, err)
	idr.Check(&x)
}

func TestInsert(t *testing.T) {
	var x idr.IDR[int]
	a, b := new(int), new(int)
	if err := x.Insert(-1, a); err != idr.ErrRange {
		t.Error(err)
	}
	if err := x.Insert(math.MinInt, a); err != idr.ErrRange {
		t.Error(err)
	}
	for _, id := range []int{5, math.MaxInt, 0, 70, 1 << 20} {
		if err := x.Insert(id, a); err != nil {
			t.Error(err)
		}
		if err := x.Insert(id, b); err != idr.ErrExists || x.Find(id) != a {
			t.Error(err)
		}
	}
	wantIDs(t, &x, 0, 5, 70, 1<<20, math.MaxInt)
	if err := x.Insert(6, nil); err != nil {
		t.Error(err)
	}
	if err := x.Insert(6, a); err != idr.ErrExists {
		t.Error("Insert of a reserved id:", err)
	}
	wantIDs(t, &x, 0, 5, 70, 1<<20, math.MaxInt)
}

// A nil reserves: the id is taken, and there is no entry.
func TestReserve(t *testing.T) {
	var x idr.IDR[int]
	a, b := new(int), new(int)
	id, err := x.Alloc(nil)
	wantID(t, 0, id, err)
	id, err = x.AllocRange(nil, 0, 10)
	wantID(t, 1, id, err)
	id, err = x.AllocCyclic(nil, 2, 10)
	wantID(t, 2, id, err)
	if err := x.Insert(3, nil); err != nil {
		t.Fatal(err)
	}
	id, err = x.Alloc(a)
	wantID(t, 4, id, err)
	if x.Len() != 5 {
		t.Error("Len", x.Len())
	}
	wantIDs(t, &x, 4)

	if old, err := x.Replace(0, a); old != nil || err != nil || x.Find(0) != a {
		t.Error("publishing by Replace:", old, err)
	}
	if !x.CompareAndSwap(1, nil, a) || x.Find(1) != a {
		t.Error("publishing by CompareAndSwap")
	}
	if x.CompareAndSwap(1, nil, b) || x.CompareAndSwap(1, b, a) || x.Find(1) != a {
		t.Error("CompareAndSwap with a wrong old")
	}
	if old, err := x.Replace(1, b); old != a || err != nil {
		t.Error("Replace:", old, err)
	}
	wantIDs(t, &x, 0, 1, 4)
	if !x.CompareAndSwap(1, b, nil) || x.Find(1) != nil {
		t.Error("CompareAndSwap to a reservation")
	}
	if old, err := x.Replace(4, nil); old != a || err != nil || x.Find(4) != nil {
		t.Error("Replace by a reservation:", old, err)
	}
	if !x.CompareAndSwap(4, nil, nil) {
		t.Error("CompareAndSwap of nil and nil")
	}
	wantIDs(t, &x, 0)
	if x.Len() != 5 {
		t.Error("Len", x.Len())
	}
	if x.Remove(4) != nil || x.Remove(2) != nil {
		t.Error("Remove of a reserved id")
	}
	if x.Len() != 3 {
		t.Error("Len", x.Len())
	}
	if x.CompareAndSwap(2, nil, a) {
		t.Error("CompareAndSwap of a free id")
	}
	id, err = x.Alloc(a)
	wantID(t, 2, id, err)
	x.Clear()
	wantIDs(t, &x)
	if x.Len() != 0 {
		t.Error("Len", x.Len())
	}
}

func TestAllocCyclic(t *testing.T) {
	var x idr.IDR[int]
	v := new(int)
	alloc := func(want, min, max int) {
		t.Helper()
		id, err := x.AllocCyclic(v, min, max)
		wantID(t, want, id, err)
	}
	alloc(5, 5, 9)
	alloc(6, 5, 9)
	id, err := x.Alloc(v) // does not move it
	wantID(t, 0, id, err)
	id, err = x.AllocRange(v, 8, 8)
	wantID(t, 8, id, err)
	x.Remove(5)
	alloc(7, 5, 9)
	alloc(9, 5, 9)
	alloc(5, 5, 9)
	id, err = x.AllocCyclic(v, 5, 9)
	wantErr(t, idr.ErrFull, id, err)
	x.Remove(7) // the failure did not move it: it is at 6
	x.Remove(5)
	alloc(7, 5, 9)
	alloc(5, 5, 9)
	alloc(100, 100, 200) // outside: from min
	alloc(101, 0, 200)   // inside, with another range
	alloc(1, 0, 50)      // outside on the other side
	alloc(math.MaxInt, math.MaxInt, math.MaxInt)
	alloc(2, 0, math.MaxInt)
	x.Clear()
	alloc(3, 0, 50) // Clear does not move it
	idr.Check(&x)
}

func TestAllocFunc(t *testing.T) {
	var x idr.IDR[thing]
	id, err := x.AllocFunc(0, 10, func(id int) *thing {
		if x.Find(id) != nil || x.Remove(id) != nil || x.CompareAndSwap(id, nil, &thing{}) {
			t.Error("there is an entry while it is built")
		}
		if _, err := x.Replace(id, &thing{}); err != idr.ErrNotFound {
			t.Error("Replace while it is built:", err)
		}
		if err := x.Insert(id, &thing{}); err != idr.ErrExists {
			t.Error("Insert while it is built:", err)
		}
		if x.RemoveRetire(rcu.Default(), id, nil) {
			t.Error("RemoveRetire while it is built")
		}
		if x.Len() != 1 {
			t.Error("Len", x.Len())
		}
		other, err := x.AllocFunc(0, 10, func(id int) *thing { return &thing{id: id} })
		wantID(t, 1, other, err)
		x.Clear()
		wantIDs(t, &x)
		if x.Len() != 1 {
			t.Error("Len after Clear", x.Len())
		}
		other, err = x.Alloc(&thing{id: 1})
		wantID(t, 1, other, err)
		return &thing{id: id}
	})
	wantID(t, 0, id, err)
	wantIDs(t, &x, 0, 1)
	if v := x.Find(0); v.id != 0 {
		t.Error(v)
	}

	id, err = x.AllocFunc(0, 10, func(int) *thing { return nil })
	wantErr(t, idr.ErrAborted, id, err)
	wantIDs(t, &x, 0, 1)
	func() {
		defer func() {
			if r := recover(); r != "boom" {
				t.Errorf("recovered %v", r)
			}
		}()
		x.AllocFunc(0, 10, func(id int) *thing {
			if id != 2 {
				t.Errorf("id %d", id)
			}
			panic("boom")
		})
	}()
	done := make(chan bool)
	go func() {
		defer close(done)
		x.AllocFunc(0, 10, func(int) *thing { runtime.Goexit(); return nil })
	}()
	<-done
	wantIDs(t, &x, 0, 1)
	if x.Len() != 2 {
		t.Error("Len", x.Len())
	}
	id, err = x.AllocFunc(0, 1, func(int) *thing { t.Error("build was called"); return nil })
	wantErr(t, idr.ErrFull, id, err)
	id, err = x.Alloc(&thing{id: 2})
	wantID(t, 2, id, err)
}

func TestRemoveRetire(t *testing.T) {
	d := newDomain(t)
	var x idr.IDR[thing]
	v := &thing{id: 0}
	x.Alloc(v)
	x.Alloc(nil) // 1

	for _, id := range []int{1, 2, 100, math.MaxInt, -1, math.MinInt} {
		if x.RemoveRetire(d, id, func(*thing) { t.Error("freed") }) {
			t.Errorf("RemoveRetire(%d) of no entry", id)
		}
	}
	if x.Len() != 2 {
		t.Error("Len", x.Len())
	}

	section := d.ReadLock()
	freed, release := make(chan *thing), make(chan bool)
	if !x.RemoveRetire(d, 0, func(v *thing) {
		if id, err := x.AllocRange(&thing{}, 5, 5); id != 5 || err != nil {
			t.Error("Alloc in free:", id, err)
		}
		freed <- v
		<-release
	}) {
		t.Fatal("RemoveRetire")
	}
	held := func(when string) {
		t.Helper()
		if x.Find(0) != nil || x.Remove(0) != nil || x.CompareAndSwap(0, nil, v) || x.RemoveRetire(d, 0, nil) {
			t.Errorf("there is an entry %s", when)
		}
		if err := x.Insert(0, v); err != idr.ErrExists {
			t.Errorf("Insert %s: %v", when, err)
		}
		if _, err := x.Replace(0, v); err != idr.ErrNotFound {
			t.Errorf("Replace %s: %v", when, err)
		}
		if id, err := x.AllocRange(v, 0, 1); err != idr.ErrFull {
			t.Errorf("id %d was given out %s", id, when)
		}
		if n := x.Len(); n < 2 {
			t.Errorf("Len %s: %d", when, n)
		}
	}
	held("in the grace period")
	x.Clear()
	x.Insert(1, nil)
	held("after Clear")
	select {
	case <-freed:
		t.Error("freed in a read section")
	case <-time.After(20 * time.Millisecond):
	}
	section.Unlock()
	if got := <-freed; got != v {
		t.Errorf("freed %p, not %p", got, v)
	}
	held("while it is freed")
	close(release)
	if err := d.Barrier(t.Context()); err != nil {
		t.Fatal(err)
	}
	id, err := x.Alloc(v)
	wantID(t, 0, id, err)

	if !x.RemoveRetire(d, 0, nil) { // a nil free
		t.Error("RemoveRetire")
	}
	if err := d.Barrier(t.Context()); err != nil {
		t.Fatal(err)
	}
	id, err = x.Alloc(v)
	wantID(t, 0, id, err)

	if !x.RemoveRetire(d, 0, func(*thing) { runtime.Goexit() }) {
		t.Error("RemoveRetire")
	}
	if err := d.Barrier(t.Context()); err != nil {
		t.Fatal(err)
	}
	id, err = x.Alloc(v)
	wantID(t, 0, id, err)

	// Misuse changes nothing.
	closed := rcu.New()
	if err := closed.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	for text, d := range map[string]*rcu.Domain{
		"idr: RemoveRetire with a nil Domain":                              nil,
		"idr: RemoveRetire: rcu: use of a closed Domain":                   closed,
		"idr: RemoveRetire: rcu: use of a Domain that was not made by New": new(rcu.Domain),
	} {
		wantPanic(t, text, func() { x.RemoveRetire(d, 0, nil) })
		if x.Find(0) != v {
			t.Error("the entry is gone")
		}
	}
	idr.Check(&x)
}

func TestClear(t *testing.T) {
	var x idr.IDR[int]
	v := new(int)
	for _, ids := range [][]int{{}, {0}, {1}, {63}, {64}, {999}, {math.MaxInt}, edges()} {
		for _, id := range ids {
			if err := x.Insert(id, v); err != nil {
				t.Fatal(err)
			}
		}
		wantIDs(t, &x, ids...)
		x.Clear()
		wantIDs(t, &x)
		if x.Len() != 0 {
			t.Error("Len", x.Len())
		}
		for _, id := range ids {
			if x.Find(id) != nil {
				t.Errorf("%d is found", id)
			}
		}
		id, err := x.Alloc(v)
		wantID(t, 0, id, err)
		x.Clear()
	}
	for range 100_000 {
		x.Alloc(v)
	}
	x.Clear()
	wantIDs(t, &x)
	for i := range 1000 {
		id, err := x.Alloc(v)
		wantID(t, i, id, err)
	}
}

func TestIteration(t *testing.T) {
	ids := []int{0, 4, 7, 9, 15, 63, 64, 128, 1000, 4096, 99999, 1 << 30, math.MaxInt - 64, math.MaxInt}
	fill := func() *idr.IDR[thing] {
		x := new(idr.IDR[thing])
		for _, id := range ids {
			if err := x.Insert(id, &thing{id: id}); err != nil {
				t.Fatal(err)
			}
			x.Insert(id^1, nil) // not seen
		}
		return x
	}
	x := fill()
	wantIDs(t, x, ids...)
	for i, start := range ids {
		for _, from := range []int{start, max(start, 1) - 1} {
			want := ids[i:]
			if from < start && i > 0 && ids[i-1] == from {
				want = ids[i-1:]
			}
			var got []int
			for id := range x.From(from) {
				got = append(got, id)
			}
			if !slices.Equal(got, want) {
				t.Errorf("From(%d) gives %v, want %v", from, got, want)
			}
		}
	}
	var got []int
	for id := range x.From(math.MinInt) {
		if got = append(got, id); len(got) == 3 {
			break
		}
	}
	if !slices.Equal(got, ids[:3]) {
		t.Error(got)
	}

	// Removing in the body.
	got = nil
	for id, v := range x.All() {
		if x.Remove(id) != v {
			t.Errorf("Remove(%d)", id)
		}
		got = append(got, id)
	}
	if !slices.Equal(got, ids) {
		t.Error(got)
	}
	wantIDs(t, x)

	// Removing what is to come.
	x, got = fill(), nil
	for id := range x.All() {
		got = append(got, id)
		if next, _, ok := x.Next(id + 1); ok && id < math.MaxInt {
			x.Remove(next)
		}
	}
	var every []int
	for i := 0; i < len(ids); i += 2 {
		every = append(every, ids[i])
	}
	if !slices.Equal(got, every) {
		t.Errorf("got %v, want %v", got, every)
	}

	// Clear in the body ends it.
	x, got = fill(), nil
	for id := range x.All() {
		got = append(got, id)
		x.Clear()
	}
	if !slices.Equal(got, ids[:1]) {
		t.Error(got)
	}

	// Inserting in the body: behind is not seen, ahead may be, nothing twice.
	x, got = fill(), nil
	for id := range x.All() {
		got = append(got, id)
		if id > 0 {
			x.Insert(id-1, &thing{id: id - 1})
		}
		if id < 1<<20 {
			x.Insert(id+2, &thing{id: id + 2})
		}
		if len(got) > 2*1<<20 {
			t.Fatal("no end")
		}
		if id > 1000 && id < 99000 {
			x.Remove(id) // or it goes on and on
		}
	}
	if !slices.IsSorted(got) || len(slices.Compact(slices.Clone(got))) != len(got) {
		t.Error("not ascending")
	}
	for _, id := range ids {
		if !slices.Contains(got, id) {
			t.Errorf("%d was not seen", id)
		}
	}

	// A break in the middle of a range-over-func body, a return, and a panic.
	x = fill()
	func() {
		defer func() { recover() }()
		for range x.All() {
			panic(0)
		}
	}()
	wantIDs(t, x, ids...)
}

// Pointers of every alignment: nothing of the user's pointer is used for marks.
func TestPointers(t *testing.T) {
	var x idr.IDR[byte]
	b := make([]byte, 256)
	for i := range b {
		b[i] = byte(i)
		id, err := x.Alloc(&b[i])
		wantID(t, i, id, err)
	}
	for i := range b {
		if v := x.Find(i); v != &b[i] || *v != byte(i) {
			t.Fatalf("id %d: %p", i, v)
		}
	}
	var zero idr.IDR[struct{}] // all pointers to it may be equal
	v := new(struct{})
	id, err := zero.Alloc(v)
	wantID(t, 0, id, err)
	if zero.Find(0) != v || zero.Remove(0) != v || zero.Find(0) != nil {
		t.Error("IDR[struct{}]")
	}
	var of idr.IDR[*int]
	p := new(int)
	of.Alloc(&p)
	if of.Find(0) != &p {
		t.Error("IDR[*int]")
	}
}

// What only the IDR refers to is not collected, and what it gave back is.
func TestGarbage(t *testing.T) {
	var x idr.IDR[thing]
	collected := make(chan int, 1000)
	for i := range 1000 {
		v := &thing{id: i}
		runtime.AddCleanup(v, func(i int) { collected <- i }, i)
		x.Insert(i*1000, v)
	}
	runtime.GC()
	runtime.GC()
	for id, v := range x.All() {
		if v.id*1000 != id {
			t.Fatalf("id %d has thing %d", id, v.id)
		}
	}
	for id := range x.All() {
		x.Remove(id)
	}
	deadline := time.Now().Add(10 * time.Second)
	for len(collected) < 1000 {
		if time.Now().After(deadline) {
			t.Fatalf("%d of 1000 were collected", len(collected))
		}
		runtime.GC()
		runtime.Gosched()
	}
	runtime.KeepAlive(&x)
}

func TestErrors(t *testing.T) {
	for _, err := range []error{idr.ErrFull, idr.ErrRange, idr.ErrExists, idr.ErrNotFound, idr.ErrAborted} {
		if s := fmt.Sprint(err); len(s) < 6 || s[:5] != "idr: " {
			t.Errorf("%q", s)
		}
	}
}
