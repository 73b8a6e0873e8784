package rcutest

import (
	"math/rand/v2"
	"runtime"
	"sync"
	"time"
)

// storming is held by the Run that has a storm: GOMAXPROCS has to be what it was in the end.
var storming sync.Mutex

// storm disturbs the process until stop is called.
func storm() (stop func()) {
	storming.Lock()
	before := runtime.GOMAXPROCS(0)
	over := make(chan struct{})
	var wg sync.WaitGroup
	every := func(longest time.Duration, do func()) {
		wg.Go(func() {
			for took := time.Duration(0); ; {
				select {
				case <-over:
					return
				case <-time.After(max(rand.N(longest), took)): // Where it is slow, others get their turn, too.
					start := time.Now()
					do()
					took = time.Since(start)
				}
			}
		})
	}
	every(5*time.Millisecond, runtime.GC)
	every(20*time.Millisecond, func() { runtime.GOMAXPROCS(1 + rand.IntN(2*runtime.NumCPU())) })
	every(100*time.Microsecond, signalThreads)
	return func() {
		close(over)
		wg.Wait()
		runtime.GOMAXPROCS(before)
		storming.Unlock()
	}
}
