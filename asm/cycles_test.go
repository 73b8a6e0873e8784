package asm

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/quiesce-go/quiesce/internal/storm"
)

func TestCycles(t *testing.T) {
	for name, f := range map[string]func() uint64{"Cycles": Cycles, "CyclesOrdered": CyclesOrdered} {
		start, last := f(), f()
		for range storm.Size(1_000_000) {
			now := f()
			if now < last {
				t.Fatalf("%s: %d after %d", name, now, last)
			}
			last = now
		}
		time.Sleep(time.Millisecond)
		if d := f() - start; d < 1000 || d > 1<<40 {
			t.Errorf("%s: %d in a millisecond or more", name, d)
		}
		if n := testing.AllocsPerRun(100, func() { f() }); n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
	Pause()
}

// TestCyclesOrdered has one thread read the counter after it has seen that the
// other had read it. Without the order the second reading can be the lower one.
func TestCyclesOrdered(t *testing.T) {
	var turn atomic.Int64
	var seen [2]uint64 // written in its owner's turn
	rounds := int64(storm.Size(200_000))
	var wg sync.WaitGroup
	for me := range int64(2) {
		wg.Go(func() {
			for r := me; r < rounds; r += 2 {
				for i := 0; turn.Load() != r; i++ {
					if i > 1000 {
						runtime.Gosched()
					}
				}
				seen[me] = CyclesOrdered()
				if seen[me] < seen[1-me] {
					t.Errorf("round %d: %d after %d", r, seen[me], seen[1-me])
				}
				turn.Store(r + 1)
			}
		})
	}
	wg.Wait()
}
