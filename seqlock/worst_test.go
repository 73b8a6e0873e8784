package seqlock

import (
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"github.com/quiesce-go/quiesce/internal/patience"
)

// A Load may take this long beside writers that never rest, and what the kernel
// takes away comes on top: where it stops a writer in the middle of a write, or the
// reader, to run other programs, nothing that a reader can do brings it back.
const worstLoad = time.Millisecond

// A besideWriters is what some Loads took beside writers that never rest.
type besideWriters struct {
	procs       int
	loads, late int // late: longer than worstLoad
	ours        int // of which so many were so without what the kernel took away
	worst       time.Duration
	worstOurs   time.Duration
}

func (b besideWriters) String() string {
	return fmt.Sprintf("%d loads, the worst took %v; %d more than %v, of which %d without what the kernel took away, the worst %v",
		b.loads, b.worst, b.late, worstLoad, b.ours, b.worstOurs)
}

// ok allows for what nothing accounts for, such as a processor that a hypervisor
// has stopped. On one processor the account has the wait for the reader's turn in
// it, which is longer than a Load; but there a reader that depends on the writers to
// stop is late nearly always. Where the scheduler may stop a writer in the middle of a
// write, the reader waits for that one's turn, too.
func (b besideWriters) ok() bool {
	switch {
	case b.procs == 1:
		return b.late <= b.loads/2
	case !assembly:
		return b.ours <= b.loads/2
	}
	return b.ours <= max(1, b.loads/50)
}

// measure makes loads, or fewer in a few seconds, beside writers. Each starts when
// its goroutine has just been scheduled, so that it is seldom the reader itself
// that is taken off its processor.
func measure(procs, writers, loads int, load, store func()) besideWriters {
	b := besideWriters{procs: procs}
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(procs))
	defer debug.SetGCPercent(debug.SetGCPercent(-1)) // whose workers would take a processor too
	var stop atomic.Bool
	var wg sync.WaitGroup
	for range writers {
		wg.Go(func() {
			for !stop.Load() {
				store()
			}
		})
	}
	for begin := time.Now(); b.loads < loads && time.Since(begin) < 3*time.Second; b.loads++ {
		// Not between Gosched and load: a system call gives the writers time to get
		// out of the reader's way.
		was, _ := waited()
		runtime.Gosched()
		start := time.Now()
		load()
		d := time.Since(start)
		b.worst = max(b.worst, d)
		if d > worstLoad {
			b.late++
			now, _ := waited()
			if d -= now - was; d > worstLoad {
				b.ours++
			}
			b.worstOurs = max(b.worstOurs, d)
		}
	}
	stop.Store(true)
	wg.Wait()
	return b
}

// waited returns for how long this program's threads have waited for a processor
// that the kernel gave to others, or to another one of them.
func waited() (total time.Duration, ok bool) {
	const tasks = "/proc/self/task"
	threads, err := os.ReadDir(tasks)
	for _, thread := range threads {
		line, err := os.ReadFile(tasks + "/" + thread.Name() + "/schedstat")
		if os.IsNotExist(err) {
			continue // has ended
		}
		var ran, waited int64 // in nanoseconds
		if _, err := fmt.Sscan(string(line), &ran, &waited); err != nil {
			return 0, false
		}
		total += time.Duration(waited)
	}
	return total, err == nil && total > 0
}

// stops returns the longest time for which one of two goroutines that only look at
// the clock did not get to, and which the kernel does not account for.
func stops() time.Duration {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(2))
	var longest [2]time.Duration
	var wg sync.WaitGroup
	for i := range longest {
		wg.Go(func() {
			was, _ := waited()
			last := time.Now()
			for begin := last; last.Sub(begin) < 300*time.Millisecond; {
				now := time.Now()
				if d := now.Sub(last); d > worstLoad {
					is, _ := waited()
					longest[i] = max(longest[i], d-(is-was))
					was, now = is, time.Now()
				}
				last = now
			}
		})
	}
	wg.Wait()
	return max(longest[0], longest[1])
}

// TestLoad_Worst has writers that never rest, and looks at how long single
// Loads take.
func TestLoad_Worst(t *testing.T) {
	if _, ok := waited(); !ok {
		t.Log("no schedstat here: what the kernel takes away counts as ours")
	}
	for _, c := range []struct{ procs, writers, loads int }{
		{1, 1, 20}, {1, 3, 10}, {2, 1, 500}, {2, 3, 200}, // on one, the reader's turn comes after 10 ms for each writer
	} {
		if testing.Short() {
			c.loads /= 5
		}
		worst[[8]uint64](t, "Value/64B", c.procs, c.writers, c.loads, newValue)
		worst[[128]uint64](t, "Value/1KiB", c.procs, c.writers, c.loads, newValue)
		worst[[8]uint64](t, "Latch/64B", c.procs, c.writers, c.loads, newLatch)
	}
}

func worst[T any](t *testing.T, name string, procs, writers, loads int, newCell func() cell[T]) {
	t.Run(fmt.Sprintf("%s/procs=%d/writers=%d", name, procs, writers), func(t *testing.T) {
		v, src, dst := newCell(), new(T), new(T)
		b := measure(procs, writers, loads, func() { v.LoadTo(dst) }, func() { v.StoreFrom(src) })
		t.Log(b)
		if b.ok() {
			return
		}
		if s := stops(); s > worstLoad {
			t.Skipf("this machine's processors stop without the kernel's knowledge, for %v and more: %v", s, b)
		}
		t.Error(b)
	})
}

// TestLoad_WorstTwins has readers that leave out what keeps a Load short. Each must
// be found by measure; the limit for that is for busy machines, whose kernel takes
// nearly all of the time away.
func TestLoad_WorstTwins(t *testing.T) {
	if _, ok := waited(); !ok {
		t.Skip("no schedstat here: TestLoad_Worst cannot tell what the kernel took away")
	}
	type block [2048]uint64
	var v Value[block]
	v.Store(block{})
	src, dst := new(block), new(block)
	// A reader that neither keeps the writers out in the end nor makes them give way.
	// It gives up after some time: the longer it waits, the more of that the kernel
	// of a busy machine has taken.
	const size = unsafe.Sizeof(block{})
	weak := func() {
		start := time.Now()
		for i := 0; !tryLoad(&v.head, unsafe.Pointer(dst), size) && time.Since(start) < 5*worstLoad; i++ {
			relax(i)
		}
	}
	// storeGeneric of a writer that the scheduler stops in the middle, as it may at any time.
	stopped := func(h *head, src any, n uintptr) {
		s := h.seq.Load()
		if s&states != open || !h.seq.CompareAndSwap(s, s-open+owned) {
			storeSlow(h, pointer(src), n, src)
			return
		}
		copyIn(h.words(), pointer(src), n)
		runtime.Gosched()
		h.seq.Store(s + oneWrite)
		if h.waiting.Load() != 0 {
			storeRest()
		}
	}
	b := measure(1, 1, 20, func() { anyLoadGeneric(&v.head, dst, size) }, func() { stopped(&v.head, src, size) })
	if t.Log(b); !b.ok() {
		t.Errorf("a Load is late beside a writer that is stopped in the middle: %v", b)
	}
	for _, twin := range []struct {
		name         string
		procs, loads int
		store        func(h *head, src any, n uintptr)
	}{
		// Each time that the reader gets its turn, the writer is in the middle of a write.
		{"procs=1", 1, 20, stopped},
		// The writer is back before the reader has made its copy.
		{"procs=2", 2, 200, anyStore},
	} {
		t.Run(twin.name, func(t *testing.T) {
			if twin.procs > runtime.NumCPU() {
				t.Skipf("needs %d processors", twin.procs)
			}
			if twin.procs > 1 && !assembly {
				t.Skip("needs writers that the scheduler does not stop, too")
			}
			patience.Until(t, "a reader that only waits is late", func() (any, bool) {
				b := measure(twin.procs, 1, twin.loads, weak, func() { twin.store(&v.head, src, size) })
				return b, !b.ok()
			})
		})
	}
}
