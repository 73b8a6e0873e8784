package seqlock

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"github.com/quiesce-go/quiesce/internal/patience"
)

// The twins here are broken in one step each. If no torn read can be seen with
// them, tests that see none without them say nothing.

// loadNoRecheck is load without its last step.
func loadNoRecheck(h *head, dst any, n uintptr) {
	copyOut(pointer(dst), h.words(), n)
}

// loadFewNoRecheck is Load of a few words without its last look at seq.
func loadFewNoRecheck(v *Value[few]) few {
	for v.seq.Load()&open == 0 {
	}
	return copyFew(v.words(), unsafe.Sizeof(few{}))
}

// loadFewAnyState is Load of a few words in any state.
func loadFewAnyState(v *Value[few]) few {
	for {
		s := v.seq.Load()
		w := copyFew(v.words(), unsafe.Sizeof(few{}))
		if (v.seq.Load()^s)&^owned == 0 {
			return w
		}
	}
}

// storeInOpen is store without its first step: T is written in state 01.
func storeInOpen(h *head, src any, n uintptr) {
	copyIn(h.words(), pointer(src), n)
	h.seq.Add(oneWrite)
}

// loadLatchNoRecheck is loadLatch without its last step.
func loadLatchNoRecheck(h *latch, dst any, n, stride uintptr) {
	copyOut(pointer(dst), h.half(h.seq.Load(), stride), n)
}

// loadLatchLate is loadLatch whose last step looks for the end of the write that
// gets in the way, and not for its start.
func loadLatchLate(h *latch, dst any, n, stride uintptr) {
	for {
		s := h.seq.Load()
		copyOut(pointer(dst), h.half(s, stride), n)
		if h.seq.Load()-(s&^writing) < 2*oneWrite {
			return
		}
	}
}

// writeLatchSame is writeLatch with one copy, the one that readers are sent to.
func writeLatchSame(h *latch, src any, n, stride uintptr) {
	s := h.seq.Load()
	h.seq.Store(s + writing)
	copyIn(h.half(s, stride), pointer(src), n)
	h.seq.Store(s + 2*oneWrite)
}

// writeLatchLate is writeLatch without its first step.
func writeLatchLate(h *latch, src any, n, stride uintptr) {
	s := h.seq.Load()
	copyBack(h.half(s+oneWrite, stride), pointer(src), n)
	h.seq.Store(s + oneWrite)
}

// writeLatchBack is writeLatch with copyBack, and nothing is wrong with it.
func writeLatchBack(h *latch, src any, n, stride uintptr) {
	s := h.seq.Load()
	h.seq.Store(s + writing)
	copyBack(h.half(s+oneWrite, stride), pointer(src), n)
	h.seq.Store(s + oneWrite)
}

// copyBack is copyIn that begins in the middle. A reader who has begun a little earlier
// does not stay ahead of it.
func copyBack(dst, src unsafe.Pointer, n uintptr) {
	copyIn(unsafe.Add(dst, n/2), unsafe.Add(src, n/2), n-n/2)
	copyIn(dst, src, n/2)
}

// tornLatch is torn for a Latch.
func tornLatch(load, write func(h *latch, p any, n, stride uintptr), limit time.Duration) int {
	var r rawLatch
	r.use(&r.halves)
	return tornBeside(
		func(x *words128) { load(&r.latch, x, maxSize, rawStride) },
		func(x *words128) {
			r.mu.Lock()
			defer r.mu.Unlock()
			write(&r.latch, x, maxSize, rawStride)
		}, limit)
}

// torn has one goroutine load what another one stores.
func torn(load, store func(h *head, p any, n uintptr), limit time.Duration) int {
	var r raw
	r.use(&r.buf)
	return tornBeside(
		func(x *words128) { load(&r.head, x, maxSize) },
		func(x *words128) { store(&r.head, x, maxSize) }, limit)
}

// tornFew is torn for a Value of a few words.
func tornFew(load func(v *Value[few]) few, limit time.Duration) int {
	var v Value[few]
	v.use(&v.val)
	return tornBeside(
		func(x *words128) {
			w := load(&v)
			*x = splat(w.a)
			x[1], x[2], x[3] = w.b, w.c, w.d
		},
		func(x *words128) { v.Store(few{x[0], x[1], x[2], x[3]}) }, limit)
}

type words128 [maxSize / 8]uint64

// tornBeside returns how many of the loads, until limit or the first torn one,
// gave words of two stores.
func tornBeside(load, store func(x *words128), limit time.Duration) (n int) {
	var stop atomic.Bool
	var wg sync.WaitGroup
	wg.Go(func() {
		for i := uint64(0); !stop.Load(); i++ {
			x := splat(i)
			store(&x)
		}
	})
	for start := time.Now(); n == 0 && time.Since(start) < limit; {
		for range 100 {
			var x words128
			if load(&x); x != splat(x[0]) {
				n++
			}
		}
	}
	stop.Store(true)
	wg.Wait()
	return n
}

// intactFor is for how long nothing may be torn that is not broken. What is gives
// a torn read within a few milliseconds.
func intactFor() time.Duration {
	if testing.Short() {
		return 30 * time.Millisecond
	}
	return 100 * time.Millisecond
}

func splat(w uint64) (x words128) {
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
	const limit = 2 * time.Second // of which a few milliseconds are needed
	tears := func(what string, torn func() int) {
		patience.Until(t, what+" tears reads", func() (any, bool) {
			n := torn()
			return n, n > 0
		})
	}
	tears("load without its last step", func() int { return torn(loadNoRecheck, anyStore, limit) })
	tears("store without its first step", func() int { return torn(anyLoad, storeInOpen, limit) })
	tears("store without its first step, beside loadGeneric,", func() int { return torn(anyLoadGeneric, storeInOpen, limit) })
	tears("Load of a few words without its last look", func() int { return tornFew(loadFewNoRecheck, limit) })
	tears("Load of a few words in any state", func() int { return tornFew(loadFewAnyState, limit) })
	if tornFew((*Value[few]).Load, intactFor()) != 0 {
		t.Error("torn read of a few words")
	}
	for name, m := range map[string]latchRoutines{
		"loadLatch without its last step":              {"", loadLatchNoRecheck, anyWriteLatch},
		"loadLatch with a last step that is late":      {"", loadLatchLate, writeLatchBack},
		"writeLatch that writes where readers read":    {"", anyLoadLatch, writeLatchSame},
		"writeLatch without its first step":            {"", anyLoadLatch, writeLatchLate},
		"writeLatch without its first step, portable,": {"", anyLoadLatchGeneric, writeLatchLate},
	} {
		tears(name, func() int { return tornLatch(m.load, m.write, limit) })
	}
	// TestHammerSizes looks in its own way.
	patience.Until(t, "hammerSize finds a load without its last step", func() (any, bool) {
		var r raw
		r.use(&r.buf)
		err := hammerSize(maxSize, 2, 1000,
			func(p *byte) { loadNoRecheck(&r.head, p, maxSize) },
			func(p *byte) { anyStore(&r.head, p, maxSize) })
		return err != nil, err != nil // its text has every byte
	})
	for _, im := range latches {
		if tornLatch(im.load, im.write, intactFor()) != 0 {
			t.Errorf("%s: torn read of a Latch", im.name)
		}
	}
	for _, im := range implementations {
		if torn(im.load, im.store, intactFor()) != 0 {
			t.Errorf("%s: torn read beside store", im.name)
		}
		if torn(im.load, func(h *head, src any, n uintptr) {
			h.lock()
			im.publish(h, src, n)
			h.unlock()
		}, intactFor()) != 0 {
			t.Errorf("%s: torn read beside publish", im.name)
		}
	}
}
