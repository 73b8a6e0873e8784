package asm

import (
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"github.com/quiesce-go/quiesce/internal/storm"
	"github.com/quiesce-go/quiesce/internal/tier"
)

// onTiers runs f once in each tier that works here.
func onTiers(t *testing.T, f func(t *testing.T)) {
	for _, want := range []tier.Tier{tier.RSEQ, tier.Pinned, tier.Shared} {
		t.Run("tier="+want.String(), func(t *testing.T) {
			now, undo := tier.Switch(want)
			defer undo()
			if now != want {
				t.Skipf("the %v tier does not work here, the %v one does", want, now)
			}
			f(t)
		})
	}
}

func panics(f func()) (with any) {
	defer func() { with = recover() }()
	f()
	return nil
}

func TestTier(t *testing.T) {
	_, err := RSEQ()
	if got := tier.Current(); (got == tier.RSEQ) != (err == nil) {
		t.Errorf("the tier is %v, RSEQ says %v", got, err)
	}
	for _, want := range []tier.Tier{tier.RSEQ, tier.Pinned, tier.Shared} {
		before := tier.Current()
		now, undo := tier.Switch(want)
		if now > want || now != tier.Current() {
			t.Errorf("from %v to %v: %v, %v", before, want, now, tier.Current())
		}
		undo()
		if tier.Current() != before {
			t.Errorf("back to %v: %v", before, tier.Current())
		}
	}
}

func TestBlock_Alloc(t *testing.T) {
	for _, n := range []int{0, -1, MaxWords + 1, -1 << 31} {
		if p := panics(func() { new(Block).Alloc(n) }); p == nil || !strings.HasPrefix(fmt.Sprint(p), "asm: ") {
			t.Errorf("Alloc(%d): panic %v", n, p)
		}
	}
	for _, n := range []int{1, 2, 3, 4, 5, 8, 9, 100, 4096, 4097, MaxWords} {
		var b Block
		b.Alloc(n)
		base, size := uintptr(b.lease.Load().base), 1
		for size < n {
			size *= 2
		}
		if base%uintptr(min(8*size, 4096)) != 0 {
			t.Errorf("%d words at %#x", n, base)
		}
		b.Alloc(n)
		b.Alloc(1)
		if uintptr(b.lease.Load().base) != base {
			t.Errorf("%d words moved", n)
		}
		if n == size && n < MaxWords {
			if p := panics(func() { b.Alloc(n + 1) }); p == nil || !strings.HasPrefix(fmt.Sprint(p), "asm: ") {
				t.Errorf("Alloc(%d) of a Block of %d: panic %v", n+1, n, p)
			}
		}
	}
	var b Block
	b.Add(0, 1)
	if p := panics(func() { b.Alloc(2) }); p == nil {
		t.Error("Alloc(2) of a Block that an Add gave one word does not panic")
	}
	if b.Alloc(1); b.Sum(0) != 1 {
		t.Error(b.Sum(0))
	}
}

// TestBlock_AllocRace: whoever is first gives the Block its memory, and nothing
// that was added to it is lost.
func TestBlock_AllocRace(t *testing.T) {
	onTiers(t, func(t *testing.T) {
		for range storm.Size(20_000) {
			var b Block
			var wg sync.WaitGroup
			start := make(chan struct{})
			for range 3 {
				wg.Go(func() { <-start; b.Add(0, 1) })
			}
			wg.Go(func() { <-start; b.Alloc(1); b.AddShared(0, 1) })
			close(start)
			wg.Wait()
			if b.Sum(0) != 4 {
				t.Fatal(b.Sum(0))
			}
		}
	})
}

// TestBlock_StackGrows: the stack may have to grow where an operation goes on in Go. That one has what the operation was
// called with all the same, and its caller what it had.
func TestBlock_StackGrows(t *testing.T) {
	onTiers(t, func(t *testing.T) {
		const depth = 500
		var b Block
		b.Alloc(2)
		var sum int64
		b.Divert(func(i int, delta int64) { sum += delta << i }) // so that no sequence can be used
		grown := make(chan int)
		during := 0
		n := storm.Size(200)
		for range n {
			go func() { grown <- descend(t, &b, depth) }()
			during += <-grown
		}
		if want := int64(n * depth * (depth + 1) / 2); sum != want {
			t.Errorf("the sum is %d, want %d", sum, want)
		}
		if during == 0 {
			t.Error("the stack grew elsewhere only: the test does not do what it should")
		}
	})
}

// descend uses b at each depth, and returns how often the stack was somewhere else afterwards.
//
//go:noinline
func descend(t *testing.T, b *Block, n int) (grown int) {
	var frame [512]byte // more than what it calls has, so that those find too little left
	for i := range frame {
		frame[i] = byte(n)
	}
	before := uintptr(unsafe.Pointer(&frame))
	b.Add(0, int64(n))
	l, slot := b.TryLock(1)
	if uintptr(unsafe.Pointer(&frame)) != before {
		grown++
	}
	if l == nil || l != b.lockAt(slot, 1) || !b.Held(slot, 1) {
		t.Errorf("TryLock returns %p and slot %d", l, slot)
	} else {
		l.Unlock()
	}
	if n > 0 {
		grown += descend(t, b, n-1)
	}
	for i, c := range frame {
		if c != byte(n) {
			t.Errorf("byte %d of the frame is %#x, want %#x", i, c, byte(n))
		}
	}
	return grown
}

// TestBlock_Neighbours fills the words around one and works on that.
func TestBlock_Neighbours(t *testing.T) {
	onTiers(t, func(t *testing.T) {
		const n = 9
		var b Block
		b.Alloc(n)
		magic := func(c, i int) int64 { return int64(c)<<40 | int64(i)<<8 | 0x5a }
		l := b.lease.Load()
		for c := range columns * tierCount {
			for i := range n {
				if i != 4 {
					*l.word(0, c, i) = magic(c, i)
				}
			}
		}
		for range 1000 {
			b.Add(4, 1)
			b.AddShared(4, 1<<40)
			col := Column()
			b.CompareAndSwap(col, 4, -1, 5)
			b.CompareAndSwap(col, 4, b.Load(col, 4), b.Load(col, 4))
		}
		for c := range columns * tierCount {
			for i := range n {
				if got := *l.word(0, c, i); i != 4 && got != magic(c, i) {
					t.Errorf("word %d of column %d is %#x", i, c, got)
				}
			}
		}
		if b.Sum(4) != 1000+1000<<40 {
			t.Errorf("%#x", b.Sum(4))
		}
	})
}

func TestBlock_Extremes(t *testing.T) {
	onTiers(t, func(t *testing.T) {
		for _, deltas := range [][]int64{
			{1<<63 - 1, 1}, {-1 << 63, -1}, {1 << 32, -1}, {-1, 1 << 63 >> 1}, {0x0123456789abcdef, -0x0123456789abcdef},
		} {
			var b Block
			b.Alloc(MaxWords)
			want := int64(0)
			for _, d := range deltas {
				b.Add(MaxWords-1, d)
				want += d
				if got := b.Sum(MaxWords - 1); got != want {
					t.Errorf("%#x: %#x, want %#x", deltas, got, want)
				}
			}
		}
	})
}

// TestBlock_Memory: the words of small Blocks lie side by side.
func TestBlock_Memory(t *testing.T) {
	const n = 10_000
	blocks := make([]Block, n)
	pages := map[uintptr]bool{}
	for i := range blocks {
		blocks[i].Alloc(1)
		pages[uintptr(blocks[i].lease.Load().base)/4096] = true
	}
	// 20 pages if they were all new; runs that others have left lie elsewhere.
	perColumn := len(pages) * 4096
	t.Logf("%d Blocks lie on %d pages, %d KiB for each column that uses them all", n, len(pages), perColumn>>10)
	if perColumn > n*8*3 {
		t.Errorf("%d bytes for a Block and column, want 24 at most", perColumn/n)
	}
	if size := unsafe.Sizeof(Block{}); size != 2*unsafe.Sizeof(uintptr(0)) {
		t.Errorf("a Block has %d bytes", size)
	}
}

// TestBlock_Reuse: the words of a Block that is gone come back, and are zero in
// every column.
func TestBlock_Reuse(t *testing.T) {
	const n = 32 // a class of runs that nothing else here uses
	where := map[uintptr]bool{}
	again := 0
	for round := range 20 {
		var blocks [50]Block
		for i := range blocks {
			b := &blocks[i]
			b.Alloc(n)
			l := b.lease.Load()
			if where[uintptr(l.base)] {
				again++
			}
			where[uintptr(l.base)] = true
			for c := range columns * tierCount {
				for w := range n {
					if p := l.word(0, c, w); atomic.LoadInt64(p) != 0 {
						t.Fatalf("round %d: word %d of column %d is %#x in a new Block", round, w, c, *p)
					} else {
						*p = -1
					}
				}
			}
		}
		runtime.KeepAlive(&blocks)
		blocks = [50]Block{}
		free := func() int {
			pool.Lock()
			defer pool.Unlock()
			return len(pool.free[5])
		}
		for end := time.Now().Add(2 * time.Minute); free() < 25; {
			runtime.GC()
			runtime.Gosched()
			if time.Now().After(end) {
				t.Fatalf("%d runs came back in two minutes", free())
			}
		}
	}
	if again == 0 {
		t.Error("no run was used again")
	}
	t.Logf("%d runs for %d Blocks", len(where), 20*50)
}

func TestBlock_Divert(t *testing.T) {
	onTiers(t, func(t *testing.T) {
		var b Block
		b.Alloc(2)
		b.Add(1, 5)
		var diverted []int64
		b.Divert(func(i int, delta int64) { diverted = append(diverted, int64(i), delta) })
		b.Add(1, 7)
		b.AddShared(1, 20)
		if fmt.Sprint(diverted) != "[1 7]" || b.Sum(1) != 25 {
			t.Errorf("diverted %v, sum %d", diverted, b.Sum(1))
		}
		b.Divert(nil)
		b.Add(1, 100)
		if len(diverted) != 2 || b.Sum(1) != 125 {
			t.Errorf("diverted %v, sum %d", diverted, b.Sum(1))
		}
	})
}

// TestBlock_DivertRace: after Divert, every Add is diverted, also of a Block
// whose first Add gives it its memory beside that.
func TestBlock_DivertRace(t *testing.T) {
	onTiers(t, func(t *testing.T) {
		for range storm.Size(20_000) {
			var b Block
			var diverted atomic.Int64
			var wg sync.WaitGroup
			wg.Go(func() { b.Add(0, 1) })
			b.Divert(func(int, int64) { diverted.Add(1) })
			before := diverted.Load()
			b.Add(0, 1)
			if diverted.Load() == before {
				t.Fatal("an Add after Divert was not diverted")
			}
			wg.Wait()
			if b.Sum(0)+diverted.Load() != 2 {
				t.Fatal(b.Sum(0), diverted.Load())
			}
		}
	})
}

// TestBlock_DivertStorm switches between words and function all the while.
func TestBlock_DivertStorm(t *testing.T) {
	onTiers(t, func(t *testing.T) {
		var b Block
		var diverted atomic.Int64
		var over atomic.Bool
		var wg, switcher sync.WaitGroup
		stop := storm.Start(t, storm.Threads(func() { b.Add(0, 0) }))
		switcher.Go(func() {
			for !over.Load() {
				b.Divert(func(_ int, delta int64) { diverted.Add(delta) })
				runtime.Gosched()
				b.Divert(nil)
				runtime.Gosched()
			}
		})
		n := storm.Size(2_000_000)
		for range 4 {
			wg.Go(func() {
				for range n {
					b.Add(0, 1)
				}
			})
		}
		wg.Wait()
		over.Store(true)
		switcher.Wait()
		stop()
		if got := b.Sum(0) + diverted.Load(); got != int64(4*n) {
			t.Errorf("%d adds were counted as %d", 4*n, got)
		}
		t.Logf("%d of %d diverted", diverted.Load(), 4*n)
	})
}

func TestBlock_NoAllocation(t *testing.T) {
	onTiers(t, func(t *testing.T) {
		var b Block
		b.Alloc(16)
		if n := testing.AllocsPerRun(100, func() {
			b.Add(1, 1)
			b.AddShared(1, 1)
			b.Sum(1)
			b.CompareAndSwap(Column(), 1, 0, 1)
			b.CompareAndSwapTwo(Column(), 1, 0, 1, 2, 1)
			if l, _ := b.TryLock(14); l != nil {
				l.Unlock()
			}
			b.Push(3, 8, 1)
			b.Pop(3)
			b.AddWithin(13, 1, 1<<40)
		}); n != 0 {
			t.Errorf("%v allocations", n)
		}
	})
}

// TestBlock_Columns: Column tells where the next Add goes, unless the caller moves.
func TestBlock_Columns(t *testing.T) {
	if Columns() < 1 || ColumnCount() != 2*Columns() {
		t.Errorf("%d columns, %d values", Columns(), ColumnCount())
	}
	onTiers(t, func(t *testing.T) {
		var b Block
		moved := 0
		for range 1000 {
			col := Column()
			before := b.Load(col, 0)
			b.Add(0, 1)
			if b.Load(col, 0) != before+1 {
				moved++
			}
		}
		if moved > 900 {
			t.Errorf("%d of 1000 Adds went to another column than Column said", moved)
		}
		sum := int64(0)
		for col := range ColumnCount() {
			sum += b.Load(col, 0)
		}
		if sum != 1000 || b.Sum(0) != 1000 {
			t.Errorf("the columns have %d, Sum is %d", sum, b.Sum(0))
		}
	})
}

// TestHammerBlock runs the single-word operations beside each other under a
// storm.
func TestHammerBlock(t *testing.T) {
	onTiers(t, func(t *testing.T) {
		const goroutines, word, swapped, within, two, shadow, lock = 16, 0, 1, 2, 3, 4, 6
		n := storm.Size(4_000_000) / goroutines
		var b Block
		b.Alloc(8)
		locked := make([]atomic.Int64, Slots()) // the race detector does not see the lock
		var threads atomic.Int64
		one := func() {
			b.Add(word, 1)
			b.Add(within, 1)
			for ok := false; !ok; {
				_, ok = b.AddWithin(within, 1, 1<<60)
			}
			for ok := false; !ok; {
				col := Column()
				old := b.Load(col, swapped)
				ok = b.CompareAndSwap(col, swapped, old, old+1)
			}
			l, slot := b.TryLock(lock)
			for ; l == nil; l, slot = b.TryLock(lock) {
				runtime.Gosched()
			}
			locked[slot].Store(locked[slot].Load() + 1) // two steps, which the lock keeps together
			l.Unlock()
			for ok := false; !ok; {
				col := Column()
				old := b.Load(col, two)
				ok = b.CompareAndSwapTwo(col, two, old, old+1, shadow, old)
			}
		}
		stop := storm.Start(t, storm.Threads(func() { one(); threads.Add(1) }))
		var wg sync.WaitGroup
		for range goroutines {
			wg.Go(func() {
				for i := range n {
					one()
					if i%4096 == 0 {
						runtime.Gosched()
					}
				}
			})
		}
		wg.Wait()
		stop()
		want := int64(goroutines*n) + threads.Load()
		inLock := int64(0)
		for slot := range locked {
			n := locked[slot].Load()
			inLock += n
			if b.Held(slot, lock) {
				t.Errorf("slot %d is locked", slot)
			}
		}
		for i, got := range []int64{b.Sum(word), b.Sum(swapped), b.Sum(within) / 2, inLock, b.Sum(two)} {
			if got != want {
				t.Errorf("word %d: %d updates were counted as %d", i, want, got)
			}
		}
		for col := range ColumnCount() {
			// One less than the other, or left behind by one that did not get further.
			n, old := b.Load(col, two), b.Load(col, shadow)
			if old != n && old != n-1 {
				t.Errorf("column %d: %d, and %d beside it", col, n, old)
			}
		}
	})
}

// TestHammerBlock_Stack: what is pushed is popped once, or is left.
func TestHammerBlock_Stack(t *testing.T) {
	onTiers(t, func(t *testing.T) {
		const goroutines, depth = 8, 30
		n := storm.Size(1_000_000) / goroutines
		var b Block
		b.Alloc(1 + depth)
		seen := make([]atomic.Int32, goroutines*n)
		var pushed, full, empty atomic.Int64
		pop := func() {
			if v, ok := b.Pop(0); !ok {
				empty.Add(1)
			} else if seen[v].Add(1) != 1 {
				t.Errorf("%d was popped twice", v)
			}
		}
		stop := storm.Start(t, storm.Threads(pop))
		var wg sync.WaitGroup
		for g := range goroutines {
			wg.Go(func() {
				for i := range n {
					v := g*n + i
					if _, ok := b.Push(0, depth, int64(v)); ok {
						pushed.Add(1)
					} else {
						full.Add(1)
						seen[v].Store(1)
					}
					if i%3 != 0 {
						pop()
					}
					if i%1024 == 0 {
						runtime.Gosched()
					}
				}
			})
		}
		wg.Wait()
		stop()
		for col := range ColumnCount() {
			for k := range b.Load(col, 0) {
				if v := b.Load(col, 1+int(k)); seen[v].Add(1) != 1 {
					t.Errorf("%d was popped and is left", v)
				}
			}
		}
		for v := range seen {
			if seen[v].Load() != 1 {
				t.Fatalf("%d was seen %d times", v, seen[v].Load())
			}
		}
		t.Logf("%d pushed, %d did not fit, %d times there was none", pushed.Load(), full.Load(), empty.Load())
	})
}

// TestBlock_AddWithin: no column gets to the bound, and sums that would wrap
// around are outside of it.
func TestBlock_AddWithin(t *testing.T) {
	onTiers(t, func(t *testing.T) {
		var b Block
		b.Alloc(1)
		add := func(delta, bound int64) bool {
			_, ok := b.AddWithin(0, delta, bound)
			return ok
		}
		stay(t, func() {
			for _, step := range []struct {
				delta, bound int64
				ok           bool
				sum          int64
			}{
				{5, 6, true, 5}, {1, 6, false, 5}, {-10, 6, true, -5}, {-1, 6, false, -5}, {0, 6, true, -5}, {0, 5, false, -5},
				{1<<63 - 1, 1<<63 - 1, true, 1<<63 - 6}, {6, 1<<63 - 1, false, 1<<63 - 6}, {1<<63 - 1, 1<<63 - 1, false, 1<<63 - 6},
				{-1<<63 + 6, 10, true, 0}, {-1 << 63, 1<<63 - 1, false, 0},
			} {
				if ok := add(step.delta, step.bound); ok != step.ok || b.Sum(0) != step.sum {
					t.Errorf("%+d within %d: %v, %d; want %v, %d", step.delta, step.bound, ok, b.Sum(0), step.ok, step.sum)
				}
			}
		})
	})
}

// TestBlock_Zero: the first operation of a zero Block is in the same column as
// those that follow.
func TestBlock_Zero(t *testing.T) {
	onTiers(t, func(t *testing.T) {
		stay(t, func() {
			var added, within, locked Block
			added.Add(0, 1)
			col, ok := within.AddWithin(0, 1, 10)
			locked.Alloc(2)
			l, slot := locked.TryLock(0)
			if !ok || within.Load(col, 0) != 1 || l == nil || !locked.Held(slot, 0) {
				t.Errorf("AddWithin %d, %v; TryLock %d", col, ok, slot)
			}
			for c := columns; tier.Current() == tier.RSEQ && c < 2*columns; c++ {
				if added.Load(c, 0)+within.Load(c, 0)+locked.Load(c, 0) != 0 {
					t.Errorf("Add %d, AddWithin %d, TryLock %d in a column for threads that fall back", added.Load(c, 0), within.Load(c, 0), locked.Load(c, 0))
				}
			}
		})
	})
}

// TestBlock_CompareAndSwapTwo: word j is stored with word i, or is not looked at.
func TestBlock_CompareAndSwapTwo(t *testing.T) {
	onTiers(t, func(t *testing.T) {
		var b Block
		b.Alloc(4)
		stay(t, func() {
			col := Column()
			if b.CompareAndSwapTwo(col, 1, 9, 1, 3, 77) || b.Load(col, 1) != 0 || b.Load(col, 3) != 0 {
				t.Errorf("swapped what was not old: %d, %d", b.Load(col, 1), b.Load(col, 3))
			}
			if !retry(func() bool { return b.CompareAndSwapTwo(col, 1, 0, 5, 3, 77) }) || b.Load(col, 1) != 5 || b.Load(col, 3) != 77 {
				t.Errorf("did not swap: %d, %d", b.Load(col, 1), b.Load(col, 3))
			}
			if !retry(func() bool { return b.CompareAndSwapTwo(col, 3, 77, -1, 0, -2) }) || b.Load(col, 3) != -1 || b.Load(col, 0) != -2 {
				t.Errorf("did not swap downwards: %d, %d", b.Load(col, 3), b.Load(col, 0))
			}
			if b.Load(col, 2) != 0 {
				t.Error(b.Load(col, 2))
			}
		})
	})
}

// retry is for what may fail without a cause in plain sight.
func retry(f func() bool) bool {
	for range 100 {
		if f() {
			return true
		}
	}
	return false
}

func ExampleBlock() {
	var hits Block
	hits.Alloc(2) // words 0 and 1
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 1000 {
				hits.Add(0, 1)
				hits.Add(1, 512)
			}
		})
	}
	wg.Wait()
	fmt.Println(hits.Sum(0), hits.Sum(1))
	// Output: 8000 4096000
}
