package asm

import (
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
)

// count adds n ones to a word from 16 goroutines, half of which have threads of
// their own that end, and n more from 64 threads that are started one after the
// other. It returns an error if the sum is not exact.
func count(n int) error {
	const goroutines, threads = 16, 64
	n = n / (goroutines * threads) * goroutines * threads
	var b Block
	b.Add(0, 0)
	before := b.Sum(0)
	var wg sync.WaitGroup
	for g := range goroutines {
		wg.Go(func() {
			if g%2 == 0 {
				runtime.LockOSThread() // never undone, so the thread ends
			}
			for i := range n / goroutines {
				b.Add(0, 1)
				if i%4096 == 0 {
					runtime.Gosched()
				}
			}
		})
	}
	for range threads {
		done := make(chan struct{})
		go func() {
			defer close(done)
			runtime.LockOSThread()
			for range n / threads {
				b.Add(0, 1)
			}
		}()
		<-done
	}
	wg.Wait()
	if got := b.Sum(0) - before; got != int64(2*n) {
		return fmt.Errorf("%d adds were counted as %d", 2*n, got)
	}
	return countAll(n / 64)
}

// countAll has 8 goroutines, half of which have threads of their own, do n times every other operation. It returns
// an error if one is lost or comes twice, or if two goroutines had one lock.
func countAll(n int) error {
	const goroutines, within, swapped, two, beside, lock, stack, depth = 8, 0, 1, 2, 3, 4, 5, 10
	var b Block
	b.Alloc(16)
	var l Log
	l.Make(1 << 16)
	locked := make([]atomic.Int64, Slots())
	var pushed, popped, written atomic.Int64
	var wg sync.WaitGroup
	for g := range goroutines {
		wg.Go(func() {
			if g%2 == 0 {
				runtime.LockOSThread() // never undone, so the thread ends
			}
			for i := range n {
				for ok := false; !ok; {
					_, ok = b.AddWithin(within, 1, 1<<60)
				}
				for ok := false; !ok; {
					col := Column()
					old := b.Load(col, swapped)
					ok = b.CompareAndSwap(col, swapped, old, old+1)
				}
				for ok := false; !ok; {
					col := Column()
					old := b.Load(col, two)
					ok = b.CompareAndSwapTwo(col, two, old, old+1, beside, old)
				}
				k, slot := b.TryLock(lock)
				for ; k == nil; k, slot = b.TryLock(lock) {
					runtime.Gosched()
				}
				locked[slot].Store(locked[slot].Load() + 1) // two steps, which the lock keeps together
				k.Unlock()
				if v := int64(g*n + i + 1); i%3 < 2 {
					if _, ok := b.Push(stack, depth, v); ok {
						pushed.Add(v)
					}
				} else if v, ok := b.Pop(stack); ok {
					popped.Add(v)
				}
				if l.Write(uint32(i), nil) {
					written.Add(1)
				}
				if i%64 == 0 {
					runtime.Gosched()
				}
			}
		})
	}
	wg.Wait()
	inLock, left := int64(0), int64(0)
	for slot := range locked {
		inLock += locked[slot].Load()
	}
	for col := range ColumnCount() {
		for k := range b.Load(col, stack) {
			left += b.Load(col, stack+1+int(k))
		}
	}
	want := int64(goroutines * n)
	for name, got := range map[string]int64{
		"AddWithin": b.Sum(within), "CompareAndSwap": b.Sum(swapped), "CompareAndSwapTwo": b.Sum(two), "TryLock": inLock,
		"Push and Pop": popped.Load() + left - pushed.Load() + want,
		"Write":        int64(len(drain(&l))) - written.Load() + want, "Dropped": int64(l.Dropped()) + written.Load(),
	} {
		if got != want {
			return fmt.Errorf("%s: %d were counted as %d", name, want, got)
		}
	}
	return nil
}
