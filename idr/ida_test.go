package idr_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/quiesce-go/quiesce/idr"
)

// wantTaken fails the test unless just ids are taken, by each way of asking.
func wantTaken(t *testing.T, a *idr.IDA, ids ...int) {
	t.Helper()
	got := []int{}
	for id, ok := a.Next(-1); ok; id, ok = a.Next(id + 1) {
		got = append(got, id)
		if id == math.MaxInt {
			break
		}
	}
	if !slices.Equal(got, ids) || a.Len() != len(ids) {
		t.Fatalf("%d ids are taken, %v; want %v", a.Len(), got, ids)
	}
	for _, id := range ids {
		if !a.Contains(id) {
			t.Fatalf("%d is not contained", id)
		}
	}
	idr.CheckIDA(a)
}

func TestIDA(t *testing.T) {
	var a idr.IDA
	wantTaken(t, &a)
	for _, id := range []int{math.MinInt, -1, 0, 1000, math.MaxInt} {
		if err := a.Free(id); err != idr.ErrNotFound || a.Contains(id) {
			t.Errorf("Free(%d) of an empty IDA: %v", id, err)
		}
	}
	for want := range 3 {
		id, err := a.Alloc()
		wantID(t, want, id, err)
	}
	if err := a.Free(1); err != nil {
		t.Fatal(err)
	}
	if err := a.Free(1); err != idr.ErrNotFound {
		t.Errorf("Free of a free id: %v", err)
	}
	wantTaken(t, &a, 0, 2)
	id, err := a.AllocRange(math.MaxInt, math.MaxInt)
	wantID(t, math.MaxInt, id, err)
	id, err = a.AllocRange(math.MaxInt, math.MaxInt)
	wantErr(t, idr.ErrFull, id, err)
	wantTaken(t, &a, 0, 2, math.MaxInt)
	for _, r := range [][2]int{{-1, 5}, {5, 4}, {math.MinInt, math.MaxInt}} {
		id, err := a.AllocRange(r[0], r[1])
		wantErr(t, idr.ErrRange, id, err)
	}
	a.Clear()
	wantTaken(t, &a)
	id, err = a.Alloc()
	wantID(t, 0, id, err)
}

func TestIDA_AllocN(t *testing.T) {
	var a idr.IDA
	batch := func(n, min, max int, want ...int) {
		t.Helper()
		ids, err := a.AllocN(n, min, max)
		if err != nil || !slices.Equal(ids, want) {
			t.Fatalf("AllocN(%d, %d, %d): %v, %v; want %v", n, min, max, ids, err, want)
		}
	}
	refused := func(n, min, max int, want error) {
		t.Helper()
		before := a.Len()
		ids, err := a.AllocN(n, min, max)
		if ids != nil || err != want || a.Len() != before {
			t.Fatalf("AllocN(%d, %d, %d): %v, %v; want %v; Len was %d, is %d", n, min, max, ids, err, want, before, a.Len())
		}
		idr.CheckIDA(&a)
	}
	a.AllocRange(6, 6)
	batch(3, 5, 10, 5, 7, 8)
	refused(3, 5, 10, idr.ErrFull)
	wantTaken(t, &a, 5, 6, 7, 8)
	batch(2, 5, 10, 9, 10)
	refused(1, 5, 10, idr.ErrFull)
	refused(0, 5, 10, idr.ErrRange)
	refused(-1, 5, 10, idr.ErrRange)
	refused(1, -1, 10, idr.ErrRange)
	refused(1, 10, 5, idr.ErrRange)
	refused(7, 0, 5, idr.ErrFull)
	// What no memory could hold is refused without trying to, if it does not fit.
	refused(math.MaxInt, 0, math.MaxInt, idr.ErrFull)
	refused(math.MaxInt, 1, math.MaxInt, idr.ErrFull)
	batch(4, math.MaxInt-3, math.MaxInt, math.MaxInt-3, math.MaxInt-2, math.MaxInt-1, math.MaxInt)
	refused(1, math.MaxInt-3, math.MaxInt, idr.ErrFull)
	a.Clear()
	// Across chunks, some of them full, with one id too few and then just enough.
	for id := 1024; id < 3072; id++ {
		a.AllocRange(id, id)
	}
	a.AllocRange(3500, 3500)
	refused(2048, 0, 4095, idr.ErrFull)
	ids, err := a.AllocN(2047, 0, 4095)
	if err != nil || ids[0] != 0 || ids[1023] != 1023 || ids[1024] != 3072 || ids[2046] != 4095 || slices.Contains(ids, 3500) {
		t.Fatalf("%v, %v", ids, err)
	}
	refused(1, 0, 4095, idr.ErrFull)
	idr.CheckIDA(&a)
}

func TestIDA_AllocNTooMuch(t *testing.T) {
	var a idr.IDA
	defer func() {
		if recover() == nil {
			t.Error("no panic")
		}
		wantTaken(t, &a)
		id, err := a.Alloc()
		wantID(t, 0, id, err)
	}()
	a.AllocN(math.MaxInt, 0, math.MaxInt)
}

// What the kernel's suite for its IDA looks for.

// A chunk is filled and cleared, and the lowest id is 0 again.
func TestSuite_IDAFill(t *testing.T) {
	for _, min := range []int{0, 64, 1024, 4096, 65536, 1 << 20, 1 << 30} {
		var a idr.IDA
		for i := range 1024 {
			id, err := a.AllocRange(min, math.MaxInt)
			wantID(t, min+i, id, err)
		}
		idr.CheckIDA(&a)
		a.Clear()
		wantTaken(t, &a)
		id, err := a.Alloc()
		wantID(t, 0, id, err)
	}
}

// Up and down across each edge between words, chunks and leaves.
func TestSuite_IDAEdges(t *testing.T) {
	for _, edge := range []int{62, 63, 64, 127, 128, 960, 1023, 1024, 1025, 2048, 65535, 65536, 1 << 22, 1<<22 + 1} {
		var a idr.IDA
		lo := max(0, edge-130)
		if edge <= 2048 {
			lo = 0
		}
		for want := lo; want <= edge; want++ {
			id, err := a.AllocRange(lo, math.MaxInt)
			wantID(t, want, id, err)
		}
		id, err := a.AllocRange(lo, edge)
		wantErr(t, idr.ErrFull, id, err)
		if edge > lo {
			// The last but one alone, and again.
			for range 3 {
				if err := a.Free(edge - 1); err != nil {
					t.Fatal(err)
				}
				idr.CheckIDA(&a)
				id, err := a.AllocRange(lo, edge)
				wantID(t, edge-1, id, err)
			}
		}
		for id := edge; id >= lo; id-- {
			if !a.Contains(id) || a.Free(id) != nil || a.Contains(id) {
				t.Fatalf("Free(%d)", id)
			}
			idr.CheckIDA(&a)
		}
		wantTaken(t, &a)
	}
}

// Just below 2^31, which is the top where an int has 32 bits.
func TestSuite_IDABelow31(t *testing.T) {
	for j := 1; j <= 65536; j *= 2 {
		var a idr.IDA
		min := math.MaxInt32 - j + 1
		for i := range j {
			id, err := a.AllocRange(min, math.MaxInt32)
			wantID(t, min+i, id, err)
		}
		id, err := a.AllocRange(min, math.MaxInt32)
		wantErr(t, idr.ErrFull, id, err)
		idr.CheckIDA(&a)
	}
}

// Holes in an IDA with full leaves are found, wherever the search begins.
func TestSuite_IDAFull(t *testing.T) {
	var a idr.IDA
	const n = 3 << 16 // three leaves
	if _, err := a.AllocN(n, 0, n-1); err != nil {
		t.Fatal(err)
	}
	id, err := a.AllocRange(0, n-1)
	wantErr(t, idr.ErrFull, id, err)
	a.Free(200)
	a.Free(70_000)
	a.Free(n - 1)
	for _, want := range []int{200, 70_000, n - 1, n} {
		id, err := a.Alloc()
		wantID(t, want, id, err)
	}
	idr.CheckIDA(&a)
}

// Freed ids come again lowest first, then new ones.
func TestSuite_IDAGaps(t *testing.T) {
	var a idr.IDA
	for range 3000 {
		a.Alloc()
	}
	for _, gaps := range [][]int{{20, 21}, {21, 20}, {2999, 0, 1500}, {1023, 1024}} {
		for _, id := range gaps {
			a.Free(id)
		}
		slices.Sort(gaps)
		for _, want := range append(gaps, 3000) {
			id, err := a.Alloc()
			wantID(t, want, id, err)
		}
		a.Free(3000)
	}
}

// Random ids are toggled, against a plain bitmap.
func TestSuite_IDAToggle(t *testing.T) {
	var a idr.IDA
	var have [2048]bool
	n := 0
	rng := rand.New(rand.NewPCG(1, 2))
	rounds := 100_000
	if testing.Short() {
		rounds = 5000
	}
	for range rounds {
		i := rng.IntN(len(have))
		if a.Contains(i) != have[i] {
			t.Fatalf("Contains(%d), want %v", i, have[i])
		}
		if have[i] {
			if err := a.Free(i); err != nil {
				t.Fatal(err)
			}
			n--
		} else {
			id, err := a.AllocRange(i, i)
			wantID(t, i, id, err)
			n++
		}
		have[i] = !have[i]
		if a.Len() != n {
			t.Fatalf("Len is %d, want %d", a.Len(), n)
		}
	}
	idr.CheckIDA(&a)
}

// Many goroutines, each with an IDA of its own, have nothing to do with each other.
func TestSuite_IDAApart(t *testing.T) {
	run := newRun(t)
	for g := range 20 {
		run.Go(func() error {
			calls, err := playIDA(&tape{rng: rand.New(rand.NewPCG(uint64(g), 7))}, 30)
			if err != nil {
				return errorf("%v\nthe calls were: %q", err, calls)
			}
			return nil
		})
	}
	run.Wait()
}

// Each pair of ids, found from each start.
func TestSuite_IDAPairs(t *testing.T) {
	for _, x := range []int{0, 1, 63, 64, 1023, 1024, 5000, 1 << 20} {
		for _, y := range []int{x + 1, x + 63, x + 1024, math.MaxInt} {
			var a idr.IDA
			a.AllocRange(x, x)
			a.AllocRange(y, y)
			for start, want := range map[int]int{-1: x, x - 1: x, x: x, x + 1: y, y - 1: y, y: y} {
				if start == x && y-1 == x {
					want = x
				}
				if id, ok := a.Next(start); !ok || id != want {
					t.Errorf("Next(%d) of %d and %d: %d, %v", start, x, y, id, ok)
				}
			}
			if id, ok := a.Next(y + 1); y < math.MaxInt && ok {
				t.Errorf("Next(%d) of %d and %d: %d", y+1, x, y, id)
			}
		}
	}
}

// Emptied chunks and leaves are given back, but one.
func TestIDA_GivesBack(t *testing.T) {
	var a idr.IDA
	for i := range 100 {
		a.AllocRange(i*100_000, i*100_000)
	}
	if chunks, leaves := idr.Chunks(&a); chunks != 100 || leaves != 100 {
		t.Errorf("%d chunks, %d leaves", chunks, leaves)
	}
	for i := range 100 {
		a.Free(i * 100_000)
		idr.CheckIDA(&a)
	}
	if chunks, leaves := idr.Chunks(&a); chunks != 1 || leaves != 1 {
		t.Errorf("%d chunks, %d leaves are left", chunks, leaves)
	}
}

func TestIDA_Costs(t *testing.T) {
	const n = 1_000_000
	var a *idr.IDA
	bytes := heapOf(func() any {
		a = new(idr.IDA)
		if _, err := a.AllocN(n, 0, n); err != nil {
			t.Fatal(err)
		}
		return a
	})
	t.Logf("%d dense ids: %.3f bits each", n, float64(bytes)*8/n)
	if bytes*8 > n*6/5 {
		t.Errorf("%d dense ids take %d bytes", n, bytes)
	}
	for name, f := range map[string]func(){
		"Alloc and Free":    func() { a.Free(500); a.Alloc() },
		"at the end":        func() { id, _ := a.Alloc(); a.Free(id) },
		"Contains and Next": func() { a.Contains(5); a.Next(999_999) },
		"refused":           func() { a.AllocN(5, 0, 1000); a.Free(n + 77) },
	} {
		if n := testing.AllocsPerRun(100, f); n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
	per := heapOf(func() any {
		a := make([]idr.IDA, 1000)
		for i := range a {
			a[i].AllocRange(i<<10, math.MaxInt)
		}
		return a
	}) / 1000
	t.Logf("an IDA of one id: %d bytes", per)
	if per > 1300 {
		t.Errorf("an IDA of one id: %d bytes", per)
	}
}

func (p *tape) bit() int {
	if p.int(3) == 0 {
		return p.id()
	}
	edges := [...]int{1020, 2040, 65530, 1 << 22, 1<<30 - 5, math.MaxInt - 1030}
	return edges[p.int(len(edges))] + p.int(12)
}

// playIDA is play for an IDA.
func playIDA(p *tape, n int) (calls []string, err error) {
	var a idr.IDA
	taken := make(map[int]bool)
	free := func(n, lo, hi int) (ids []int, err error) {
		if n <= 0 || lo < 0 || hi < lo {
			return nil, idr.ErrRange
		}
		for id := uint(lo); id <= uint(hi) && len(ids) < n; id++ {
			if !taken[int(id)] {
				ids = append(ids, int(id))
			}
		}
		if len(ids) < n {
			return nil, idr.ErrFull
		}
		for _, id := range ids {
			taken[id] = true
		}
		return ids, nil
	}
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("panic: %v", r)
		}
	}()
	for i := 0; i < n && p.more(); i++ {
		call := func(format string, args ...any) { calls = append(calls, fmt.Sprintf(format, args...)) }
		one := func(id int, err error, lo, hi int) error {
			want, wantErr := free(1, lo, hi)
			if err != wantErr || err == nil && id != want[0] || err != nil && id != 0 {
				return fmt.Errorf("got %d, %v, want %v, %v", id, err, want, wantErr)
			}
			return nil
		}
		var bad error
		switch p.int(12) {
		case 0, 1:
			call("Alloc()")
			id, err := a.Alloc()
			bad = one(id, err, 0, math.MaxInt)
		case 2, 3:
			lo, hi := p.span()
			if p.int(2) == 0 {
				lo = p.bit()
				hi = max(lo, lo+p.int(70))
			}
			call("AllocRange(%d, %d)", lo, hi)
			id, err := a.AllocRange(lo, hi)
			bad = one(id, err, lo, hi)
		case 4, 5:
			lo := p.bit()
			hi := max(lo, lo+p.int(2200)) // lo, if that overflows
			n := p.int(1100) - 1
			call("AllocN(%d, %d, %d)", n, lo, hi)
			got, err := a.AllocN(n, lo, hi)
			want, wantErr := free(n, lo, hi)
			if err != wantErr || !slices.Equal(got, want) {
				bad = fmt.Errorf("got %v, %v, want %v, %v", got, err, want, wantErr)
			}
		case 6, 7:
			id := p.bit()
			call("Free(%d)", id)
			if err := a.Free(id); (err == nil) != taken[id] || err != nil && err != idr.ErrNotFound {
				bad = fmt.Errorf("got %v, want %v", err, taken[id])
			}
			delete(taken, id)
		case 8: // a run, so that chunks become empty
			id, n := p.bit(), p.int(1100)
			call("Free %d from %d", n, id)
			for range n {
				if err := a.Free(id); (err == nil) != taken[id] && bad == nil {
					bad = fmt.Errorf("got %v for %d, want %v", err, id, taken[id])
				}
				delete(taken, id)
				if id++; id < 0 {
					break
				}
			}
		case 9, 10:
			id := p.bit()
			call("Next(%d)", id)
			best, found := 0, false
			for at := range taken {
				if at >= id && (!found || at < best) {
					best, found = at, true
				}
			}
			if got, ok := a.Next(id); got != best || ok != found {
				bad = fmt.Errorf("got %d, %v, want %d, %v", got, ok, best, found)
			}
		case 11:
			if p.int(30) == 0 {
				call("Clear()")
				a.Clear()
				clear(taken)
			} else if id := p.bit(); a.Contains(id) != taken[id] {
				call("Contains(%d)", id)
				bad = fmt.Errorf("want %v", taken[id])
			}
		}
		if bad != nil {
			return calls, bad
		}
		if a.Len() != len(taken) {
			return calls, fmt.Errorf("Len is %d, want %d", a.Len(), len(taken))
		}
		idr.CheckIDA(&a)
	}
	for id := range taken {
		if !a.Contains(id) {
			return calls, fmt.Errorf("%d is not contained", id)
		}
	}
	return calls, nil
}

func TestModelIDA(t *testing.T) {
	rounds := 20
	if testing.Short() {
		rounds = 3
	}
	for range rounds {
		seed := rand.Uint64()
		if calls, err := playIDA(&tape{rng: rand.New(rand.NewPCG(seed, 0))}, 300); err != nil {
			t.Fatalf("seed %#x: %v\nthe last calls were: %q", seed, err, tail(calls))
		}
	}
}

func FuzzIDA(f *testing.F) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 10 {
		data := make([]byte, 300)
		for i := range data {
			data[i] = byte(rng.Uint32())
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if calls, err := playIDA(&tape{data: data}, 200); err != nil {
			t.Fatalf("%v\nthe calls were: %q", err, calls)
		}
	})
}

// TestHammerIDA has goroutines take ids one by one and in batches, and give them back. No id has
// two owners; ids that stay are seen by readers all the time; what is freed is not.
func TestHammerIDA(t *testing.T) {
	atProcs(t, []int{1, 2, 4}, func(t *testing.T) {
		var a idr.IDA
		const limit = 5000
		stay := []int{0, 1024, 4095, 70_000, math.MaxInt}
		for _, id := range stay {
			a.AllocRange(id, id)
		}
		var owners [limit]atomic.Int32
		run := newRun(t)
		for g := range 4 {
			run.Go(func() error {
				rng := rand.New(rand.NewPCG(uint64(g), 1))
				for run.More() {
					lo := rng.IntN(limit)
					hi := lo + rng.IntN(limit-lo)
					ids, err := a.AllocN(1+rng.IntN(2000), lo, hi)
					if err == nil && rng.IntN(2) == 0 {
						id, err := a.AllocRange(lo, hi)
						if err == nil {
							ids = append(ids, id)
						}
					}
					for _, id := range ids {
						if id < lo || id > hi || !owners[id].CompareAndSwap(0, int32(g)+1) {
							return errorf("%d was given out twice, or is not in [%d, %d]", id, lo, hi)
						}
						if !a.Contains(id) {
							return errorf("%d is not contained", id)
						}
					}
					for _, id := range ids {
						owners[id].Store(0)
						if err := a.Free(id); err != nil {
							return errorf("Free(%d): %v", id, err)
						}
					}
				}
				return nil
			})
		}
		run.Go(func() error { // far chunks come and go
			for n := 0; run.More(); n++ {
				id, err := a.AllocRange(1<<20+n%8<<12, 1<<30)
				if err != nil {
					return err
				}
				if err := a.Free(id); err != nil || a.Contains(id) {
					return errorf("Free(%d): %v", id, err)
				}
			}
			return nil
		})
		run.Go(func() error {
			for run.More() {
				for _, id := range stay {
					if !a.Contains(id) {
						return errorf("%d is not contained", id)
					}
					if next, ok := a.Next(id); !ok || next != id {
						return errorf("Next(%d) gave %d, %v", id, next, ok)
					}
				}
				last := 0
				for id, ok := a.Next(1); ok && id < math.MaxInt; id, ok = a.Next(id + 1) {
					if id <= last {
						return errorf("Next(%d) gave %d", last+1, id)
					}
					last = id
				}
			}
			return nil
		})
		run.Wait()
		wantTaken(t, &a, stay...)
	})
}
