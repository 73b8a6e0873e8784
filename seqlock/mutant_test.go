package seqlock

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// The twins here are broken in one step each. If no torn read can be seen with
// them, tests that see none without them say nothing.

// loadNoRecheck is load without its last step.
func loadNoRecheck(h *head, dst any, n uintptr) {
	copyOut(pointer(dst), h.words(), n)
}

// storeInOpen is store without its first step: T is written in state 01.
func storeInOpen(h *head, src any, n uintptr) {
	copyIn(h.words(), pointer(src), n)
	h.seq.Add(oneWrite)
}

// torn returns how many of the loads, until deadline or the first torn one,
// gave words of two stores.
func torn(load, store func(h *head, p any, n uintptr), limit time.Duration) (n int) {
	type words [128]uint64
	var (
		r    raw
		stop atomic.Bool
		wg   sync.WaitGroup
	)
	r.use(&r.buf)
	wg.Go(func() {
		for i := uint64(0); !stop.Load(); i++ {
			var x words
			for j := range x {
				x[j] = i
			}
			store(&r.head, &x, maxSize)
		}
	})
	for start := time.Now(); n == 0 && time.Since(start) < limit; {
		for range 100 {
			var x words
			load(&r.head, &x, maxSize)
			if x != splat(x[0]) {
				n++
			}
		}
	}
	stop.Store(true)
	wg.Wait()
	return n
}

func splat(w uint64) (x [128]uint64) {
	for j := range x {
		x[j] = w
	}
	return x
}

func TestMutants(t *testing.T) {
	if runtime.NumCPU() < 2 {
		t.Skip("on one processor a torn read needs a preemption inside of a copy: not seen in reasonable time")
	}
	if runtime.GOMAXPROCS(0) < 2 {
		defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(2))
	}
	const limit = 20 * time.Second // of which a few milliseconds are needed
	if torn(loadNoRecheck, store, limit) == 0 {
		t.Error("load without its last step gave no torn read")
	}
	if torn(load, storeInOpen, limit) == 0 {
		t.Error("store without its first step led to no torn read")
	}
	if torn(loadGeneric, storeInOpen, limit) == 0 {
		t.Error("store without its first step led to no torn read of loadGeneric")
	}
	for _, im := range implementations {
		if torn(im.load, im.store, 100*time.Millisecond) != 0 {
			t.Errorf("%s: torn read beside store", im.name)
		}
		if torn(im.load, func(h *head, src any, n uintptr) {
			h.lock()
			im.publish(h, src, n)
			h.unlock()
		}, 100*time.Millisecond) != 0 {
			t.Errorf("%s: torn read beside publish", im.name)
		}
	}
}
