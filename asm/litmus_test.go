package asm

import (
	"fmt"
	"runtime"
	"sync/atomic"
	"testing"

	"github.com/quiesce-go/quiesce/internal/patience"
	"github.com/quiesce-go/quiesce/internal/storm"
)

// litmusSB runs the store-buffering litmus test many times over. One goroutine
// Adds and then looks for the number that the other has reached; the other
// stores the next number, calls fence, and then counts the Adds. It returns how
// often the other did not count an Add whose caller had not yet seen the number,
// and how often it looked.
//
// If the other counted n Adds after it had stored j, one of the first n+1 is not
// in its count; what that one's caller saw, and so what the (n+1)st saw, must
// not be less than j.
func litmusSB(fence func(), adds int) (violations, looks int) {
	var (
		b       Block
		reached atomic.Int64
		over    atomic.Bool
		saw     = make([]int64, adds) // by the Adds
		counted []int64               // by the numbers, from 1 on
	)
	b.Alloc(1)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for i := range saw {
			b.Add(0, 1)
			saw[i] = reached.Load()
			for range i % 8 { // now a little earlier, now a little later
				Pause()
			}
		}
		over.Store(true)
	}()
	for j := int64(1); !over.Load(); j++ {
		reached.Store(j)
		fence()
		counted = append(counted, b.Sum(0))
	}
	<-done
	for k, n := range counted {
		if n < int64(adds) && saw[n] < int64(k+1) {
			violations++
		}
	}
	return violations, len(counted)
}

func litmusFence(t *testing.T, fence func(), adds int) {
	t.Helper()
	if bad, looks := litmusSB(fence, max(storm.Size(adds), 1000)); bad > 0 {
		t.Errorf("%d of %d times the fence did not order an Add with the load that follows it", bad, looks)
	} else {
		t.Logf("%d times in order", looks)
	}
}

func TestLitmusSB_Fence(t *testing.T) {
	if err := Membarrier(); err != nil {
		t.Skip(err)
	}
	litmusFence(t, Fence, 4_000_000)
}

// TestLitmusSB_NoFence shows that the tests of Fence could fail: that here an Add
// is passed by the load that follows it where nobody fences.
func TestLitmusSB_NoFence(t *testing.T) {
	if runtime.NumCPU() < 2 || runtime.GOMAXPROCS(0) < 2 {
		t.Skip("needs two CPUs")
	}
	if currentTier() == tierShared {
		t.Skip("an atomic add is a fence, and this build has no other")
	}
	if runtime.GOARCH != "amd64" || storm.Slow() {
		t.Skip("only a real machine reorders; this one is emulated, or of a kind that was not looked at")
	}
	patience.Until(t, "reordering is seen", func() (any, bool) {
		bad, looks := litmusSB(func() {}, 200_000)
		return fmt.Sprintf("%d of %d times", bad, looks), bad > 0
	})
}
