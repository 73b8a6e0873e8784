package seqlock

import (
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// TestLoad_Worst has writers that never rest, and looks at how long single
// Loads take. Each starts when its goroutine has just been scheduled, so that
// it is seldom the reader itself that is taken off its processor in the middle.
func TestLoad_Worst(t *testing.T) {
	n := 60
	if testing.Short() {
		n = 20
	}
	for _, procs := range []int{1, 2} {
		for _, writers := range []int{1, 3} {
			t.Run(fmt.Sprintf("procs=%d/writers=%d", procs, writers), func(t *testing.T) {
				defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(procs))
				var (
					v    Value[[8]uint64]
					stop atomic.Bool
					wg   sync.WaitGroup
				)
				for range writers {
					wg.Go(func() {
						for x := uint64(0); !stop.Load(); x++ {
							v.Store([8]uint64{x, x, x, x, x, x, x, x})
						}
					})
				}
				took := make([]time.Duration, n)
				for i := range took {
					runtime.Gosched()
					start := time.Now()
					v.Load()
					took[i] = time.Since(start)
				}
				stop.Store(true)
				wg.Wait()
				slices.Sort(took)
				t.Logf("median %v, 99th percentile %v, worst %v", took[n/2], took[n*99/100-1], took[n-1])
			})
		}
	}
}
