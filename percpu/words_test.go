package percpu_test

import (
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/quiesce-go/quiesce/internal/storm"
	"github.com/quiesce-go/quiesce/internal/tier"
	"github.com/quiesce-go/quiesce/percpu"
)

// panics returns what f panics with, nil if it does not.
func panics(f func()) (with any) {
	defer func() { with = recover() }()
	f()
	return nil
}

func TestWords_OutOfRange(t *testing.T) {
	onTiers(t, func(t *testing.T) {
		for _, n := range []int{1, 3, 8192, 8193} {
			w := percpu.NewWords(n)
			for _, i := range []int{-1, n, n + 1, 1<<31 - 1, -1 << 31} {
				for name, f := range map[string]func(){
					"Add":            func() { w.Add(i, 1) },
					"Load":           func() { w.Load(0, i) },
					"Sum":            func() { w.Sum(i) },
					"CompareAndSwap": func() { w.CompareAndSwap(0, i, 0, 1) },
				} {
					if p := panics(f); p == nil || !strings.Contains(fmt.Sprint(p), "percpu: Words index") {
						t.Errorf("%s of word %d of %d: panic %v", name, i, n, p)
					}
				}
			}
			for _, cpu := range []int{-1, w.CPUs(), w.CPUs() + 1, 1<<31 - 1, -1 << 31} {
				if p := panics(func() { w.Load(cpu, 0) }); p == nil || !strings.Contains(fmt.Sprint(p), "percpu: Words column") {
					t.Errorf("Load of column %d of %d: panic %v", cpu, w.CPUs(), p)
				}
				ok := false
				if p := panics(func() { ok = w.CompareAndSwap(cpu, 0, 0, 1) }); ok || p != nil && !strings.Contains(fmt.Sprint(p), "percpu: Words column") {
					t.Errorf("CompareAndSwap in column %d of %d: %v, panic %v", cpu, w.CPUs(), ok, p)
				}
			}
			for i := range n {
				if w.Sum(i) != 0 {
					t.Fatalf("word %d of %d is %d after misuse", i, n, w.Sum(i))
				}
			}
		}
	})
	for _, n := range []int{0, -1, -1 << 31} {
		if p := panics(func() { percpu.NewWords(n) }); p == nil || !strings.Contains(fmt.Sprint(p), "percpu: NewWords") {
			t.Errorf("NewWords(%d): panic %v", n, p)
		}
	}
}

// TestFault_P5: a word is no other's, whatever the number of words and however
// many Words lie beside it.
func TestFault_P5(t *testing.T) {
	onTiers(t, func(t *testing.T) {
		var all []*percpu.Words
		for _, n := range []int{1, 2, 3, 7, 8, 9, 100, 4097, 8191, 8192, 8193, 20_000, 1, 1} {
			all = append(all, percpu.NewWords(n))
		}
		size := func(k int) int { // by trying
			lo, hi := 0, 1<<15
			for lo < hi {
				if mid := (lo + hi) / 2; panics(func() { all[k].Sum(mid) }) == nil {
					lo = mid + 1
				} else {
					hi = mid
				}
			}
			return lo
		}
		value := func(k, i int) int64 { return int64(k)<<32 + int64(i) + 1 }
		for k := range all {
			for i := range size(k) {
				all[k].Add(i, value(k, i))
			}
		}
		for k := range all {
			for i := range size(k) {
				if got := all[k].Sum(i); got != value(k, i) {
					t.Fatalf("word %d of Words %d is %#x, want %#x", i, k, got, value(k, i))
				}
			}
		}
		runtime.KeepAlive(all)
	})
}

// TestWords_Columns: a sum is that of the columns, and a word that is written by
// one thread that stays where it is lies in that thread's column.
func TestWords_Columns(t *testing.T) {
	onTiers(t, func(t *testing.T) {
		w := percpu.NewWords(4)
		var wg sync.WaitGroup
		for g := range 16 {
			wg.Go(func() {
				for i := range storm.Size(20_000) {
					w.Add(i%4, int64(g))
					if cpu := w.CPU(); cpu < 0 || cpu >= w.CPUs() {
						t.Errorf("column %d of %d", cpu, w.CPUs())
						return
					}
				}
			})
		}
		wg.Wait()
		for i := range 4 {
			sum := int64(0)
			for cpu := range w.CPUs() {
				sum += w.Load(cpu, i)
			}
			if sum != w.Sum(i) {
				t.Errorf("word %d: the columns have %d, Sum is %d", i, sum, w.Sum(i))
			}
		}
	})
}

func TestWords_NoAllocation(t *testing.T) {
	onTiers(t, func(t *testing.T) {
		w := percpu.NewWords(9000)
		if n := testing.AllocsPerRun(100, func() {
			cpu := w.CPU()
			w.Add(8999, 1)
			w.CompareAndSwap(cpu, 8999, w.Load(cpu, 8999), 0)
			w.Sum(8999)
		}); n != 0 {
			t.Errorf("%v allocations", n)
		}
	})
}

func TestWords_CompareAndSwap(t *testing.T) {
	onTiers(t, func(t *testing.T) {
		w := percpu.NewWords(3)
		swap := func(old, new int64) bool { // in the own column, unless the thread moves each time
			for range 1000 {
				cpu := w.CPU()
				if w.Load(cpu, 1) != old {
					continue
				}
				if w.CompareAndSwap(cpu, 1, old, new) {
					return true
				}
			}
			return false
		}
		stay(t, func() {
			if !swap(0, 7) || !swap(7, -1) || !swap(-1, -1<<63) {
				t.Error("CompareAndSwap does not swap")
			}
			if w.CompareAndSwap(w.CPU(), 1, 7, 8) || w.CompareAndSwap(w.CPU(), 1, 0, 8) {
				t.Error("CompareAndSwap swaps what was not old")
			}
		})
		if w.Sum(0) != 0 || w.Sum(1) != -1<<63 || w.Sum(2) != 0 {
			t.Errorf("the words are %d, %d, %d", w.Sum(0), w.Sum(1), w.Sum(2))
		}
	})
}

// TestHammerWords has CompareAndSwap and Add change the same words. Twin: staleswap.
func TestHammerWords(t *testing.T) {
	onTiers(t, func(t *testing.T) {
		const goroutines, words = 16, 3
		n := storm.Size(6_000_000) / goroutines
		w := percpu.NewWords(words)
		var swapped, missed atomic.Int64
		swap := func(i int) {
			for {
				cpu := w.CPU()
				old := w.Load(cpu, i)
				if w.CompareAndSwap(cpu, i, old, old+1) {
					swapped.Add(1)
					return
				}
				missed.Add(1)
			}
		}
		stop := storm.Start(t, storm.Threads(func() { swap(0) }))
		var wg sync.WaitGroup
		for g := range goroutines {
			wg.Go(func() {
				for i := range n {
					if (g+i)%2 == 0 {
						w.Add(i%words, 1<<32)
					} else {
						swap(i % words)
					}
					if i%4096 == 0 {
						runtime.Gosched()
					}
				}
			})
		}
		wg.Wait()
		stop()
		sum := int64(0)
		for i := range words {
			sum += w.Sum(i)
		}
		if adds := int64(goroutines * n / 2); sum != adds<<32+swapped.Load() {
			t.Errorf("%d adds and %d swaps were counted as %d and %d", adds, swapped.Load(), sum>>32, sum&(1<<32-1))
		}
		t.Logf("%d swaps, %d tries in vain", swapped.Load(), missed.Load())
	})
}

// TestWords_Switch: the tier may change between any two operations.
func TestWords_Switch(t *testing.T) {
	_, undo := tier.Switch(tier.RSEQ)
	defer undo()
	w := percpu.NewWords(2)
	var over atomic.Bool
	var wg, switcher sync.WaitGroup
	switcher.Go(func() {
		for i := 0; !over.Load(); i++ {
			tier.Switch([]tier.Tier{tier.Shared, tier.RSEQ, tier.Pinned, tier.RSEQ}[i%4])
			runtime.Gosched()
		}
	})
	var swapped atomic.Int64
	n := storm.Size(2_000_000)
	for range 4 {
		wg.Go(func() {
			for range n {
				w.Add(0, 1)
				cpu := w.CPU()
				if old := w.Load(cpu, 0); w.CompareAndSwap(cpu, 0, old, old+1<<32) {
					swapped.Add(1)
				}
			}
		})
	}
	wg.Wait()
	over.Store(true)
	switcher.Wait()
	if got, want := w.Sum(0), swapped.Load()<<32+int64(4*n); got != want {
		t.Errorf("%d adds and %d swaps were counted as %d and %d", 4*n, swapped.Load(), got&(1<<32-1), got>>32)
	}
}

func ExampleWords() {
	// For each CPU, the largest of the values that were seen there.
	w := percpu.NewWords(1)
	see := func(v int64) {
		for {
			cpu := w.CPU()
			old := w.Load(cpu, 0)
			if v <= old || w.CompareAndSwap(cpu, 0, old, v) {
				return
			}
		}
	}
	var wg sync.WaitGroup
	for v := range int64(100) {
		wg.Go(func() { see(v) })
	}
	wg.Wait()
	largest := int64(0)
	for cpu := range w.CPUs() {
		largest = max(largest, w.Load(cpu, 0))
	}
	fmt.Println(largest)
	// Output: 99
}

func ExampleWords_Sum() {
	const hits, misses = 0, 1
	w := percpu.NewWords(2)
	w.Add(hits, 3)
	w.Add(misses, 1)
	w.Add(hits, 1)
	fmt.Println(w.Sum(hits), w.Sum(misses))
	// Output: 4 1
}
