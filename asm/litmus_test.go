package asm

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/quiesce-go/quiesce/internal/storm"
)

// litmusSB runs the store-buffering litmus test: one thread Adds and looks for a
// flag, the other raises the flag, calls fence, and looks for the Add. It
// returns in how many of the rounds neither saw the other.
func litmusSB(fence func(), rounds int) (neither int) {
	var b Block
	b.Add(0, 0)
	var (
		start, done atomic.Int64
		flag        atomic.Int64
		sawFlag     int64 // of the last round; written before done
	)
	var wg sync.WaitGroup
	wg.Go(func() {
		for r := int64(1); r <= int64(rounds); r++ {
			await(&start, r)
			b.Add(0, 1)
			sawFlag = flag.Load()
			done.Store(r)
		}
	})
	for r := int64(1); r <= int64(rounds); r++ {
		start.Store(r)
		for range r % 64 { // another moment each round
			Pause()
		}
		flag.Store(r)
		fence()
		sum := b.Sum(0)
		await(&done, r)
		if sum < r && sawFlag < r {
			neither++
		}
	}
	wg.Wait()
	return neither
}

func await(a *atomic.Int64, v int64) {
	for i := 0; a.Load() < v; i++ {
		if i > 10_000 {
			runtime.Gosched()
		}
	}
}

func litmusFence(t *testing.T, fence func(), rounds int) {
	t.Helper()
	rounds = max(storm.Size(rounds), 10)
	if n := litmusSB(fence, rounds); n > 0 {
		t.Errorf("in %d of %d rounds the fence did not order an Add with the load that follows it", n, rounds)
	}
}

func TestLitmusSB_Fence(t *testing.T) {
	if err := Membarrier(); err != nil {
		t.Skip(err)
	}
	litmusFence(t, Fence, 20_000)
}

// TestLitmusSB_NoFence shows that the two above could fail: that here an Add is
// passed by the load that follows it where nobody fences.
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
	end := time.Now().Add(20 * time.Second)
	for time.Now().Before(end) {
		if n := litmusSB(func() {}, 10_000); n > 0 {
			t.Logf("%d of 10000 rounds", n)
			return
		}
	}
	t.Error("no reordering was seen, so TestLitmusSB_Fence proves nothing")
}
