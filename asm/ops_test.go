package asm

import (
	"sync"
	"testing"
)

// TestHammerOps runs every operation of a Block beside the others: no value on
// a stack is lost or seen twice, and no update of a counter is lost.
func TestHammerOps(t *testing.T) {
	const goroutines = 16
	rounds := 50_000
	if testing.Short() {
		rounds = 2_000
	}
	const within, swapped, two, shadow, here, stack, depth = 1, 2, 3, 4, 5, 8, 20
	var b Block
	b.Alloc(64)
	var (
		wg          sync.WaitGroup
		mu          sync.Mutex
		pushed, got = map[int64]int{}, map[int64]int{}
	)
	for g := range goroutines {
		wg.Go(func() {
			var in, out []int64
			for k := range rounds {
				v := int64(g*rounds + k)
				if _, ok := b.Push(stack, depth, v); ok {
					in = append(in, v)
				}
				if k%3 != 0 {
					if v, ok := b.Pop(stack); ok {
						out = append(out, v)
					}
				}
				for ok := false; !ok; {
					_, ok = b.AddWithin(within, 1, 1<<40)
				}
				for ok := false; !ok; {
					col := Column()
					old := b.Load(col, swapped)
					ok = b.CompareAndSwap(col, swapped, old, old+1)
				}
				for ok := false; !ok; {
					col := Column()
					old := b.Load(col, two)
					ok = b.CompareAndSwapTwo(col, two, old, old+1, shadow, old)
				}
				for ok := false; !ok; {
					_, ok = b.SwapHere(here, b.Load(Column(), here), int64(k))
				}
			}
			mu.Lock()
			defer mu.Unlock()
			for _, v := range in {
				pushed[v]++
			}
			for _, v := range out {
				got[v]++
			}
		})
	}
	wg.Wait()
	for col := range ColumnCount() {
		for n := b.Load(col, stack); n > 0; n-- {
			got[b.Load(col, stack+int(n))]++
		}
	}
	if len(pushed) != len(got) {
		t.Errorf("%d values pushed, %d popped or left", len(pushed), len(got))
	}
	for v, n := range got {
		if n != 1 || pushed[v] != 1 {
			t.Fatalf("value %d was pushed %d times and seen %d times", v, pushed[v], n)
		}
	}
	for _, i := range []int{within, swapped, two} {
		if got, want := b.Sum(i), int64(goroutines*rounds); got != want {
			t.Errorf("word %d: %d updates counted, %d made", i, got, want)
		}
	}
}

// TestBlockAddWithin checks the bounds of AddWithin, both ways and at overflow.
func TestBlockAddWithin(t *testing.T) {
	for _, c := range []struct {
		start, delta, bound int64
		ok                  bool
	}{
		{0, 9, 10, true}, {0, 10, 10, false}, {0, -9, 10, true}, {0, -10, 10, false},
		{5, 4, 10, true}, {5, 5, 10, false}, {-5, -4, 10, true}, {-5, -5, 10, false},
		{1<<63 - 1, 1, 1<<63 - 1, false}, {-1 << 63, -1, 1<<63 - 1, false}, {3, 0, 10, true},
	} {
		var b Block
		b.Add(0, c.start)
		home := Column()
		col, ok := b.AddWithin(0, c.delta, c.bound)
		if ok && col != home || !ok && Column() != home {
			continue // the goroutine changed columns meanwhile
		}
		if b.Load(home, 0) != c.start && !ok {
			continue
		}
		if ok != c.ok {
			t.Errorf("%d plus %d within %d: %v", c.start, c.delta, c.bound, ok)
		}
	}
}
