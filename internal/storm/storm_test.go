package storm

import (
	"runtime"
	"sync/atomic"
	"testing"
	"time"
)

// TestStart: a storm does all that it says, and leaves nothing behind.
func TestStart(t *testing.T) {
	before := runtime.GOMAXPROCS(0)
	var on atomic.Int64
	stop := Start(t, Threads(func() { on.Add(1) }))
	procs := map[int]bool{}
	for end := time.Now().Add(10 * time.Second); time.Now().Before(end); {
		procs[runtime.GOMAXPROCS(0)] = true
		if procs[1] && procs[4] && on.Load() > 0 {
			break
		}
	}
	stop()
	if !procs[1] || !procs[4] || on.Load() == 0 {
		t.Errorf("GOMAXPROCS was %v; %d threads", procs, on.Load())
	}
	if now := runtime.GOMAXPROCS(0); now != before {
		t.Errorf("GOMAXPROCS is %d, it was %d", now, before)
	}
	ended := on.Load()
	stop() // once more does nothing
	time.Sleep(10 * time.Millisecond)
	if on.Load() != ended {
		t.Error("a function of Threads ran after stop")
	}
	t.Logf("slow: %v, a size of 1000: %d, it cannot start itself: %v", Slow(), Size(1000), SelfTest())
}

func TestStart_Without(t *testing.T) {
	before := runtime.GOMAXPROCS(0)
	stop := Start(t, Without(Signals|Moves|GC|Procs))
	for end := time.Now().Add(20 * time.Millisecond); time.Now().Before(end); {
		if runtime.GOMAXPROCS(0) != before {
			t.Fatal("GOMAXPROCS changed")
		}
	}
	stop()
}
