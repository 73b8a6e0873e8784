package asm

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/quiesce-go/quiesce/internal/gate"
	"github.com/quiesce-go/quiesce/internal/patience"
	"github.com/quiesce-go/quiesce/internal/storm"
)

// hammerGate has goroutines, and threads that come and go, add where a Gate is open, while it is opened and shut for
// as long as more says. It returns how many Adds were in the sum that were not made, less those that were made and
// are not, and how often the sum changed while the Gate was shut.
func hammerGate(blow func(one func()) (calm func()), more func() bool) (surplus int64, late int) {
	var g Gate
	g.Make(1)
	var did atomic.Int64
	one := func() (open bool) {
		if open = g.TryAdd(0, 1); open {
			did.Add(1)
		}
		return open
	}
	var over atomic.Bool
	var wg sync.WaitGroup
	calm := blow(func() { one() })
	for range 4 {
		wg.Go(func() {
			for !over.Load() {
				for n := 0; n < 1000 && one(); n++ {
				}
				runtime.Gosched()
			}
		})
	}
	for more() {
		g.Open()
		for range did.Load() % 64 { // now a little earlier, now a little later
			Pause()
		}
		g.Shut()
		sum := g.Block.Sum(0)
		for range 20 {
			Pause()
		}
		if g.Block.Sum(0) != sum {
			late++
		}
	}
	over.Store(true)
	wg.Wait()
	calm()
	return g.Block.Sum(0) - did.Load(), late
}

// some returns a function that returns true n times, and again until so long has passed.
func some(n int, long time.Duration) func() bool {
	if testing.Short() {
		long /= 10
	}
	end := time.Now().Add(long)
	return func() bool { n--; return n >= 0 || time.Now().Before(end) }
}

// TestHammerGate: what is in the sum when Shut returns is all, and the sum is exact. Twin: TestMutantGate.
func TestHammerGate(t *testing.T) {
	if !Gates() {
		t.Skip("no gates in this build, or on this kernel")
	}
	stormy := func(one func()) func() { return storm.Start(t, storm.Threads(one)) }
	surplus, late := hammerGate(stormy, some(20, 2*time.Second))
	if surplus != 0 || late != 0 {
		t.Errorf("%d Adds too many, or too few, were counted; %d times an Add came after Shut", surplus, late)
	}
}

// TestMutantGate: the hammer finds what comes after a Shut that does not fence.
func TestMutantGate(t *testing.T) {
	if !Gates() {
		t.Skip("no gates in this build, or on this kernel")
	}
	if runtime.NumCPU() < 2 {
		t.Skip("needs two CPUs")
	}
	gate.NoFence = true
	defer func() { gate.NoFence = false }()
	quiet := func(func()) func() { return func() {} }
	patience.Until(t, "Adds come after Shut", func() (any, bool) {
		_, late := hammerGate(quiet, some(20, time.Second/4))
		return late, late > 0
	})
}
