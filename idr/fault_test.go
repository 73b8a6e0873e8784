package idr_test

import (
	"math"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/quiesce-go/quiesce/idr"
)

// Faults that other id allocators shipped, each as an input and the right result. The numbers are
// those of the project's list of faults; I9 is the Registry's.

// A first id far up lost its high bit.
func TestFault_I1(t *testing.T) {
	ids := []uint64{0x7fffff01, 1 << 31, 1<<32 - 1}
	for level := uint64(64); level < 1<<60; level *= 64 {
		ids = append(ids, level-1, level, level+1)
	}
	for _, id := range ids {
		if id > math.MaxInt {
			t.Logf("an int has no %#x here", id)
			continue
		}
		id, v := int(id), new(int)
		var x idr.IDR[int]
		got, err := x.AllocRange(v, id, math.MaxInt)
		wantID(t, id, got, err)
		if x.Find(id) != v {
			t.Errorf("%#x is not found", id)
		}
		for bit := 1; bit > 0 && bit <= id; bit <<= 1 {
			if x.Find(id&^bit) != nil && id&bit != 0 {
				t.Errorf("%#x is found at %#x", id, id&^bit)
			}
		}
		wantIDs(t, &x, id)
		x.Clear()
		wantIDs(t, &x)
	}
}

// A walk ended at an entry that was removed while it was looked at.
func TestFault_I2(t *testing.T) {
	d := newDomain(t)
	for _, ids := range [][2]int{{100_000, 0}, {0, 100_000}} {
		fixed, toggled := ids[0], ids[1]
		atProcs(t, []int{1, 2, 8}, func(t *testing.T) {
			var x idr.IDR[thing]
			x.Insert(fixed, &thing{id: fixed})
			run := newRun(t)
			run.Go(func() error {
				v := &thing{id: toggled}
				for run.More() {
					if err := x.Insert(toggled, v); err != nil {
						return err
					}
					if x.Remove(toggled) != v {
						return errorf("Remove(%d) gave another thing", toggled)
					}
				}
				return nil
			})
			run.Go(func() error {
				for n := 0; run.More(); n++ {
					section := d.ReadLock()
					id, v, ok := x.Next(0)
					section.Unlock()
					if !ok || id != fixed && id != toggled || v.id != id {
						return errorf("Next(0) gave %d, %v, %v", id, v, ok)
					}
					seen := 0
					for id := range x.All() {
						if id == fixed {
							seen++
						}
					}
					if seen != 1 {
						return errorf("All gave %d %d times", fixed, seen)
					}
				}
				return nil
			})
			run.Wait()
		})
	}
}

// A cyclic search had an end that it might not meet, or one that it did not look at.
func TestFault_I3(t *testing.T) {
	var x idr.IDR[int]
	v := new(int)
	for want := 10; want < 14; want++ {
		id, err := x.AllocCyclic(v, 10, 13)
		wantID(t, want, id, err)
	}
	run := newRun(t)
	for range 8 {
		run.Go(func() error {
			for range 1000 {
				if id, err := x.AllocCyclic(v, 10, 13); err != idr.ErrFull {
					return errorf("got %d, %v", id, err)
				}
			}
			return nil
		})
	}
	run.Wait()
	for free := 10; free < 14; free++ { // the one issued last is 13 at first, then the one before
		x.Remove(free)
		id, err := x.AllocCyclic(v, 10, 13)
		wantID(t, free, id, err)
		x.Remove(free)
		id, err = x.AllocCyclic(v, 10, 13)
		wantID(t, free, id, err)
	}
}

// Going round was taken for an error.
func TestFault_I4(t *testing.T) {
	var x idr.IDR[int]
	v := new(int)
	for round := range 3 {
		for want := math.MaxInt - 2; ; want++ {
			id, err := x.AllocCyclic(v, math.MaxInt-2, math.MaxInt)
			wantID(t, want, id, err)
			if x.Remove(id) != v {
				t.Fatalf("round %d: %d was not there", round, id)
			}
			if id == math.MaxInt {
				break
			}
		}
	}
}

// Freeing an id that never was broke the table, or its count.
func TestFault_I5(t *testing.T) {
	var x idr.IDR[int]
	v := new(int)
	for _, live := range []int{0, 1} {
		for _, id := range []int{0, 1000, 1001, math.MaxInt, math.MaxInt - 1, -1, math.MinInt} {
			if live == 1 && id == 1000 {
				continue
			}
			if x.Remove(id) != nil || x.Len() != live {
				t.Errorf("Remove(%d): Len %d, want %d", id, x.Len(), live)
			}
			if x.RemoveRetire(newDomain(t), id, nil) {
				t.Errorf("RemoveRetire(%d)", id)
			}
		}
		x.Insert(1000, v)
	}
	if x.Remove(1000) != v || x.Remove(1000) != nil || x.Len() != 0 {
		t.Error("freed twice")
	}
	var a idr.IDA
	for _, live := range []int{0, 1} {
		for _, id := range []int{0, 1000, 1001, math.MaxInt, math.MaxInt - 1, -1, math.MinInt} {
			if live == 1 && id == 1000 {
				continue
			}
			if err := a.Free(id); err != idr.ErrNotFound || a.Len() != live {
				t.Errorf("Free(%d): %v, Len %d, want %d", id, err, a.Len(), live)
			}
		}
		a.AllocRange(1000, 1000)
	}
	if a.Free(1000) != nil || a.Free(1000) != idr.ErrNotFound || a.Len() != 0 {
		t.Error("freed twice")
	}
	wantIDs(t, &x)
}

// A range of one id was refused, and offsets were counted from the wrong start.
func TestFault_I6(t *testing.T) {
	var x idr.IDR[int]
	v := new(int)
	id, err := x.AllocRange(v, 6, 6)
	wantID(t, 6, id, err)
	id, err = x.AllocRange(v, 6, 6)
	wantErr(t, idr.ErrFull, id, err)
	for _, want := range []int{5, 7, 8, 9, 10} {
		id, err = x.AllocRange(v, 5, 10)
		wantID(t, want, id, err)
	}
	id, err = x.AllocRange(v, 5, 10)
	wantErr(t, idr.ErrFull, id, err)
	var a idr.IDA
	for _, r := range [][3]int{{6, 6, 6}, {5, 10, 5}, {5, 10, 7}, {5, 10, 8}, {5, 10, 9}, {5, 10, 10}} {
		id, err := a.AllocRange(r[0], r[1])
		wantID(t, r[2], id, err)
		id, err = a.AllocRange(id, id)
		wantErr(t, idr.ErrFull, id, err)
	}
	id, err = a.AllocRange(5, 10)
	wantErr(t, idr.ErrFull, id, err)
}

// An allocator with a preferred range and a second choice marked the wrong id; a batch that failed
// left some.
func TestFault_I7(t *testing.T) {
	var x idr.IDR[thing]
	seen := make(map[int]bool)
	build := func(id int) *thing { return &thing{id: id} }
	for range 128 {
		id, err := x.AllocFunc(16, 127, build)
		if err == idr.ErrFull {
			id, err = x.AllocFunc(0, 15, build)
		}
		if err != nil || seen[id] {
			t.Fatalf("got %d, %v", id, err)
		}
		seen[id] = true
		if again, err := x.AllocRange(nil, id, id); err != idr.ErrFull {
			t.Errorf("%d was given out again: %d, %v", id, again, err)
		}
		if v := x.Find(id); v == nil || v.id != id {
			t.Errorf("Find(%d) = %v", id, v)
		}
	}
	id, err := x.AllocRange(nil, 0, 127)
	wantErr(t, idr.ErrFull, id, err)
	if x.Len() != 128 {
		t.Error("Len", x.Len())
	}
	var a idr.IDA
	a.AllocRange(1, 1)
	if ids, err := a.AllocN(3, 0, 2); err != idr.ErrFull || a.Contains(0) || a.Contains(2) || a.Len() != 1 {
		t.Errorf("a failed batch: %v, %v, Len %d", ids, err, a.Len())
	}
	// Failed calls of each kind change nothing.
	x.AllocFunc(0, 500, func(int) *thing { return nil })
	x.AllocCyclic(nil, 0, 127)
	x.Insert(5, nil)
	x.Replace(500, nil)
	x.CompareAndSwap(5, nil, build(5))
	if x.Len() != 128 {
		t.Error("Len", x.Len())
	}
	id, err = x.AllocCyclic(nil, 0, 500)
	wantID(t, 128, id, err)
	idr.Check(&x)
}

// Limits were cut to 32 bits, and growth by steps went wrong.
func TestFault_I8(t *testing.T) {
	var x idr.IDR[int]
	v := new(int)
	limit := math.MaxInt
	if limit > math.MaxInt32 {
		limit = limit>>20 + 7 // more than 32 bits
	}
	id, err := x.AllocRange(v, 0, limit)
	wantID(t, 0, id, err)
	id, err = x.AllocRange(v, 1<<20, limit) // from nothing to 2^20 in one step
	wantID(t, 1<<20, id, err)
	id, err = x.AllocRange(v, limit, limit)
	wantID(t, limit, id, err)
	for want := 65_000; want < 66_100; want++ { // across 65,535
		id, err := x.AllocRange(v, 65_000, limit)
		wantID(t, want, id, err)
	}
	for want := 1; want < 3000; want++ {
		id, err := x.AllocRange(v, 0, limit)
		wantID(t, want, id, err)
	}
	var a idr.IDA
	for _, min := range []int{0, 65_000, 1 << 20, limit - 999} { // in one step, and across 65,535
		ids, err := a.AllocN(1000, min, limit)
		if err != nil || ids[0] != min || ids[999] != min+999 {
			t.Errorf("a batch of 1000 from %d: %v, %v", min, ids, err)
		}
	}
	idr.CheckIDA(&a)
	idr.Check(&x)
}

// A compare-and-swap beside removal was not atomic. See also TestLinear.
func TestFault_I10(t *testing.T) {
	t.Run("linear", func(t *testing.T) { testLinear(t, []opKind{opSwap, opRemove, opReplace, opFind}) })
	t.Run("one winner", func(t *testing.T) {
		// Each object that was put in comes out once.
		atProcs(t, []int{1, 2, 4}, func(t *testing.T) {
			var x idr.IDR[thing]
			var in, out atomic.Int64
			run := newRun(t)
			for range 4 {
				run.Go(func() error {
					took := func(v *thing) error {
						if v == nil {
							return nil
						}
						if v.dead {
							return errorf("two got one object")
						}
						v.dead = true
						out.Add(1)
						return nil
					}
					for run.More() {
						if x.Insert(3, &thing{id: 3}) == nil {
							in.Add(1)
						}
						if old, err := x.Replace(3, &thing{id: 3}); err == nil {
							in.Add(1)
							if err := took(old); err != nil {
								return err
							}
						}
						if old := x.Find(3); old != nil && x.CompareAndSwap(3, old, &thing{id: 3}) {
							in.Add(1)
							if err := took(old); err != nil {
								return err
							}
						}
						if err := took(x.Remove(3)); err != nil {
							return err
						}
					}
					return nil
				})
			}
			run.Wait()
			if in.Load() != out.Load()+int64(x.Len()) {
				t.Errorf("%d in, %d out, %d there", in.Load(), out.Load(), x.Len())
			}
			idr.Check(&x)
		})
	})
	t.Run("vet", func(t *testing.T) {
		goTool, err := exec.LookPath("go")
		if err != nil {
			t.Skipf("no go command to look for copies with: %v", err)
		}
		out, err := exec.Command(goTool, "vet", "-copylocks", "./testdata/copied").CombinedOutput()
		if err == nil || !strings.Contains(string(out), "assignment copies lock value to y") {
			t.Errorf("go vet does not find a copy: %v\n%s", err, out)
		}
	})
}
