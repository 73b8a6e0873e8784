//go:build !race

package asm

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/quiesce-go/quiesce/internal/storm"
)

// plainWords are what a Block would be without its tiers: a word for each CPU.
var plainWords [1024]struct {
	n int64
	_ [120]byte
}

// plainAdd is the mutant of Block.Add: the same load, add and store in the word
// of the same CPU, and nothing that makes the three one.
//
//go:noinline
func plainAdd(delta int64) {
	w := &plainWords[CPU()%len(plainWords)]
	sum := atomic.LoadInt64(&w.n) + delta // a load and a store that the compiler leaves apart
	storePlain(&w.n, sum)
}

//go:noinline
func storePlain(p *int64, v int64) { *p = v }

// TestMutantPlainAdd: under the storm that Blocks live through, plain adds are
// lost. If they were not, the storm would prove nothing.
func TestMutantPlainAdd(t *testing.T) {
	if runtime.NumCPU() < 2 {
		t.Skip("needs two CPUs")
	}
	const goroutines = 64
	n := storm.Size(16_000_000) / goroutines
	end := time.Now().Add(30 * time.Second)
	try := 0
	for ; try < 10 || time.Now().Before(end); try++ {
		clear(plainWords[:])
		stop := storm.Start(t)
		var wg sync.WaitGroup
		for range goroutines {
			wg.Go(func() {
				for i := range n {
					plainAdd(1)
					if i%8192 == 0 {
						runtime.Gosched()
					}
				}
			})
		}
		wg.Wait()
		stop()
		sum := int64(0)
		for i := range plainWords {
			sum += plainWords[i].n
		}
		if lost := int64(goroutines*n) - sum; lost != 0 {
			t.Logf("try %d: %d of %d adds are not in the sum", try, lost, goroutines*n)
			return
		}
	}
	t.Errorf("%d times %d plain adds, and none was lost", try, goroutines*n)
}
