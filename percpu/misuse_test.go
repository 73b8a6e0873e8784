package percpu

import (
	"fmt"
	"math"
	"strings"
	"testing"
)

// TestMisuse: wrong use panics with the type and the rule, and what was used wrongly
// goes on working.
func TestMisuse(t *testing.T) {
	inStorm(t, func(t *testing.T, _ func(func()) func()) {
		for what, f := range map[string]func(){
			"percpu: use of a Local that NewLocal has not made":     func() { new(Local[int]).Do(func(*int) {}) },
			"percpu: use of a Ref that NewRef has not made: Get":    func() { new(Ref).Get() },
			"percpu: use of a Ref that NewRef has not made: Put":    func() { new(Ref).Put() },
			"percpu: Kill of a Ref that NewRef has not made":        func() { new(Ref).Kill() },
			"of a percpu.Ring that NewRing has not: Write":          func() { new(Ring).Write(1, nil) },
			"of a percpu.Ring that NewRing has not: Records":        func() { new(Ring).Records()(func(Record) bool { return true }) },
			"percpu: NewRing of a size that is not above 0":         func() { NewRing(0) },
			"percpu: NewWords of more than 1<<24 words":             func() { NewWords(1 << 25) },
			"percpu: NewBatchCounter with a batch below 1":          func() { NewBatchCounter(0) },
			"percpu: Put to a Pool with a negative Cap":             func() { (&Pool[int]{Cap: -3}).Put(1) },
			"percpu: more Puts than references: found by Put of a ": func() { r := NewRef(nil); r.Kill(); r.Put() },
		} {
			want, _, _ := strings.Cut(what, ": Get")
			want, _, _ = strings.Cut(want, ": Put of")
			for _, suffix := range []string{": Put", ": Write", ": Records"} {
				want = strings.TrimSuffix(want, suffix)
			}
			if got := fmt.Sprint(panicOf(f)); !strings.Contains(got, want) {
				t.Errorf("%q: panic %s", what, got)
			}
		}
	})
}

func panicOf(f func()) (why any) {
	defer func() { why = recover() }()
	f()
	return nil
}

// TestRWMutex_Misuse: an RUnlock too many is found at once beside a writer, else by the
// next Lock or TryLock, which leave the RWMutex unlocked.
func TestRWMutex_Misuse(t *testing.T) {
	inStorm(t, func(t *testing.T, _ func(func()) func()) {
		var rw RWMutex
		if rw.plain() {
			t.Skip("a plain sync.RWMutex on this tier, whose own check is fatal")
		}
		rw.Lock()
		if got := panicOf(rw.RUnlock); got != tooManyRUnlocks {
			t.Errorf("RUnlock beside a writer: panic %v", got)
		}
		rw.Unlock()
		rw.Lock() // that one has changed nothing
		rw.Unlock()
		rw.RUnlock()
		for range 2 {
			if got := panicOf(rw.Lock); got != tooManyRUnlocks {
				t.Errorf("Lock after an RUnlock too many: panic %v", got)
			}
			if got := panicOf(func() { rw.TryLock() }); got != tooManyRUnlocks {
				t.Errorf("TryLock after an RUnlock too many: panic %v", got)
			}
		}
		rw.RLock() // makes up for it; does not hang
		rw.Lock()
		rw.Unlock()
	})
}

// TestBatchCounter_LargeBatch: a batch that is never full is a counter like any other.
func TestBatchCounter_LargeBatch(t *testing.T) {
	inStorm(t, func(t *testing.T, _ func(func()) func()) {
		for _, batch := range []int64{1 << 40, 1 << 61, 1 << 62, math.MaxInt64} {
			c := NewBatchCounter(batch)
			c.Add(5)
			for _, rhs := range []int64{math.MinInt64, -1, 4, 5, 6, math.MaxInt64} {
				want := 0
				if rhs < 5 {
					want = 1
				} else if rhs > 5 {
					want = -1
				}
				if got := c.Compare(rhs); got != want {
					t.Errorf("batch %d: Compare(%d) of 5 is %d", batch, rhs, got)
				}
			}
		}
	})
}

// TestPool_Unlimited: a Cap that will not be reached costs nothing, and nothing is dropped.
func TestPool_Unlimited(t *testing.T) {
	p := Pool[int]{Cap: math.MaxInt}
	const n = 10_000
	for i := range n {
		p.Put(i + 1)
	}
	if p.Len() != n {
		t.Errorf("%d of %d objects are there", p.Len(), n)
	}
	seen := make([]bool, n+1)
	p.Drain(func(v int) {
		if seen[v] {
			t.Errorf("%d came twice", v)
		}
		seen[v] = true
	})
}
