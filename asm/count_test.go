package asm

import (
	"fmt"
	"runtime"
	"sync"
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
	return nil
}
