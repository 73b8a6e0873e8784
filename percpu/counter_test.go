package percpu_test

import (
	"fmt"
	"math"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"github.com/quiesce-go/quiesce/asm"
	"github.com/quiesce-go/quiesce/internal/storm"
	"github.com/quiesce-go/quiesce/internal/tier"
	"github.com/quiesce-go/quiesce/percpu"
)

// onTiers runs f once in each tier that works here.
func onTiers(t *testing.T, f func(t *testing.T)) {
	for _, want := range []tier.Tier{tier.RSEQ, tier.Pinned, tier.Shared} {
		t.Run("tier="+want.String(), func(t *testing.T) {
			now, undo := tier.Switch(want)
			defer undo()
			if now != want {
				t.Skipf("the %v tier does not work here, the %v one does", want, now)
			}
			f(t)
		})
	}
}

func TestCounter(t *testing.T) {
	onTiers(t, func(t *testing.T) {
		var c percpu.Counter
		if c.Sum() != 0 || c.String() != "0" || c.Reset() != 0 {
			t.Fatal("the zero Counter is not 0")
		}
		c.Add(5)
		c.Inc()
		c.Dec()
		c.Dec()
		c.Add(-10)
		c.Add(0)
		if c.Sum() != -6 || c.String() != "-6" {
			t.Fatalf("%d, %s; want -6", c.Sum(), c.String())
		}
		if got := c.Reset(); got != -6 {
			t.Fatalf("Reset: %d, want -6", got)
		}
		if c.Sum() != 0 || c.Reset() != 0 {
			t.Fatalf("%d after Reset", c.Sum())
		}
		c.Add(math.MaxInt64)
		if c.Sum() != math.MaxInt64 {
			t.Fatal(c.Sum())
		}
		c.Inc() // wraps around
		if c.Sum() != math.MinInt64 || c.String() != "-9223372036854775808" {
			t.Fatal(c.Sum())
		}
		if c.Reset() != math.MinInt64 || c.Sum() != 0 {
			t.Fatal(c.Sum())
		}
	})
}

func TestCounter_Size(t *testing.T) {
	if n := unsafe.Sizeof(percpu.Counter{}); n > 32 {
		t.Errorf("a Counter has %d bytes, want 32 at most", n)
	}
}

func TestCounter_NoAllocation(t *testing.T) {
	onTiers(t, func(t *testing.T) {
		var c percpu.Counter
		c.Inc()
		if n := testing.AllocsPerRun(100, func() { c.Add(3); c.Inc(); c.Dec(); c.Sum(); c.Reset() }); n != 0 {
			t.Errorf("%v allocations", n)
		}
	})
}

// TestCounter_Reset: what the Resets return and what is left is what was added.
func TestCounter_Reset(t *testing.T) {
	onTiers(t, func(t *testing.T) {
		var c percpu.Counter
		var taken atomic.Int64
		var adders, resetters sync.WaitGroup
		var over atomic.Bool
		n := storm.Size(2_000_000)
		stop := storm.Start(t, storm.Without(storm.Signals|storm.Moves))
		for range 2 {
			resetters.Go(func() {
				for !over.Load() {
					got := c.Reset()
					if got < 0 {
						t.Errorf("Reset: %d of a counter that only grows", got)
					}
					taken.Add(got)
					runtime.Gosched()
				}
			})
		}
		resetters.Go(func() {
			for !over.Load() {
				if got := c.Sum(); got < 0 {
					t.Errorf("Sum: %d of a counter that only grows", got)
				}
				runtime.Gosched()
			}
		})
		for range 8 {
			adders.Go(func() {
				for range n {
					c.Add(2)
				}
			})
		}
		adders.Wait()
		over.Store(true)
		resetters.Wait()
		stop()
		if got := taken.Load() + c.Sum(); got != int64(16*n) {
			t.Errorf("%d were counted as %d", 16*n, got)
		}
	})
}

// TestFault_P1: more Ps than there were when the counter was made.
func TestFault_P1(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	onTiers(t, func(t *testing.T) {
		runtime.GOMAXPROCS(1)
		var c percpu.Counter
		c.Add(0)
		runtime.GOMAXPROCS(8)
		n := storm.Size(100_000)
		var wg sync.WaitGroup
		for range 64 {
			wg.Go(func() {
				for range n {
					c.Add(1)
				}
			})
		}
		wg.Wait()
		if c.Sum() != int64(64*n) {
			t.Errorf("%d were counted as %d", 64*n, c.Sum())
		}
	})
}

// TestFault_P2: the number of Ps goes up and down, by others' hand too.
func TestFault_P2(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	onTiers(t, func(t *testing.T) {
		runtime.GOMAXPROCS(8)
		var c percpu.Counter
		var over atomic.Bool
		var wg, change sync.WaitGroup
		change.Go(func() {
			for i := 0; !over.Load(); i++ {
				runtime.GOMAXPROCS(3)
				time.Sleep(100 * time.Microsecond)
				runtime.GOMAXPROCS(8)
				runtime.GC()
				if i%8 == 0 {
					runtime.SetDefaultGOMAXPROCS()
				}
				time.Sleep(100 * time.Microsecond)
			}
		})
		n := storm.Size(400_000)
		for range 64 {
			wg.Go(func() {
				for range n {
					c.Add(1)
				}
			})
		}
		wg.Wait()
		over.Store(true)
		change.Wait()
		runtime.GOMAXPROCS(1)
		if c.Sum() != int64(64*n) {
			t.Errorf("%d were counted as %d", 64*n, c.Sum())
		}
	})
}

// TestFault_P13: many counters with many Ps cost little more than their words.
func TestFault_P13(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(128))
	onTiers(t, func(t *testing.T) {
		const n = 10_000
		counters := make([]percpu.Counter, n)
		before := resident(t)
		heap := heapBytes()
		cells := percpu.Stats().Cells
		var wg sync.WaitGroup
		for k := range 100 {
			wg.Go(func() {
				for i := range n / 100 {
					counters[k*n/100+i].Add(int64(i))
				}
			})
		}
		wg.Wait()
		grown, heapGrown := resident(t)-before, heapBytes()-heap
		t.Logf("%d counters: %d KiB of heap, %d KiB more resident", n, heapGrown>>10, grown>>10)
		// 10,000 cells for each CPU, less what the collector takes from other tests meanwhile.
		if u := percpu.Stats(); u.Cells-cells > n || u.Columns <= 12 && 8*(u.Cells-cells)*u.Columns >= 1<<20 {
			t.Errorf("%d more cells in %d columns", u.Cells-cells, u.Columns)
		}
		// 8 bytes for each CPU, and a lease and its cleanup on the heap.
		if heapGrown > n*256 {
			t.Errorf("%d bytes of heap for a counter", heapGrown/n)
		}
		for i := range counters {
			if counters[i].Sum() != int64(i%(n/100)) {
				t.Fatalf("counter %d is %d", i, counters[i].Sum())
			}
		}
	})
}

func heapBytes() int {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc)
}

// TestCounter_Reuse: the memory of counters that are gone goes to new ones, and
// those start at 0.
func TestCounter_Reuse(t *testing.T) {
	onTiers(t, func(t *testing.T) {
		const batch = 2_000
		rounds := storm.Size(100_000) / batch
		if rounds < 5 {
			rounds = 5
		}
		var first, last int
		for round := range rounds {
			counters := make([]percpu.Counter, batch)
			var wg sync.WaitGroup
			for g := range 4 {
				wg.Go(func() {
					for i := range counters {
						c := &counters[i]
						if g == 0 {
							runtime.Gosched()
						}
						c.Add(int64(i)<<g | 1<<62)
					}
				})
			}
			wg.Wait()
			for i := range counters {
				if got, want := counters[i].Sum(), int64(i*15); got != want {
					t.Fatalf("round %d: counter %d is %d, want %d", round, i, got, want)
				}
			}
			clear(counters)
			counters = nil
			collect(t)
			last = asm.Memory().Mapped
			if round == 2 {
				first = last
			}
		}
		t.Logf("%d KiB mapped after three rounds, %d KiB after %d", first>>10, last>>10, rounds)
		if last > first+1<<20 {
			t.Errorf("the memory of %d counters grew from %d to %d bytes", batch, first, last)
		}
	})
}

// collect has the cleanups of everything unreachable run.
func collect(t *testing.T) {
	t.Helper()
	for range 2 { // the second collection begins when the first one's cleanups are queued
		done := make(chan struct{})
		p := new([16]*int)
		runtime.AddCleanup(p, func(c chan struct{}) { close(c) }, done)
		p = nil
		for start, ran := time.Now(), false; !ran; {
			runtime.GC() // p may survive one collection, in a register or on a stack
			select {
			case <-done:
				ran = true
			case <-time.After(time.Second):
				if time.Since(start) > time.Minute {
					t.Fatal("no cleanup ran in a minute")
				}
			}
		}
	}
}

// TestHammerCounter is the library's promise: whatever happens to the threads,
// no increment is lost.
func TestHammerCounter(t *testing.T) {
	onTiers(t, func(t *testing.T) { hammer(t, 128_000_000) })
}

// TestHammerCounter_Switch changes the tier all the while, as a thread does for
// itself that the kernel refuses to register.
func TestHammerCounter_Switch(t *testing.T) {
	var over atomic.Bool
	var wg sync.WaitGroup
	_, undo := tier.Switch(tier.RSEQ)
	defer undo()
	wg.Go(func() {
		for i := 0; !over.Load(); i++ {
			tier.Switch([]tier.Tier{tier.Shared, tier.RSEQ, tier.Pinned, tier.RSEQ}[i%4])
			time.Sleep(50 * time.Microsecond)
		}
	})
	hammer(t, 32_000_000)
	over.Store(true)
	wg.Wait()
}

// TestCounter_Exec starts programs meanwhile: for a moment each one's thread has the memory of this process, and the
// thread-local storage of the thread that starts it.
func TestCounter_Exec(t *testing.T) {
	if err := storm.SelfTest(); err != nil {
		t.Skip(err)
	}
	exe, err := os.Executable()
	if err != nil {
		t.Skip(err)
	}
	onTiers(t, func(t *testing.T) {
		var c percpu.Counter
		var over atomic.Bool
		var did atomic.Int64
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				n := int64(0)
				for ; !over.Load(); n++ {
					c.Inc()
				}
				did.Add(n)
			})
		}
		for range 4 {
			c.Inc() // so that the starting thread is registered, too
			did.Add(1)
			if out, err := exec.Command(exe, "-test.run=^$").CombinedOutput(); err != nil {
				t.Errorf("%v\n%s", err, out)
			}
		}
		over.Store(true)
		wg.Wait()
		if c.Sum() != did.Load() {
			t.Errorf("%d were counted as %d", did.Load(), c.Sum())
		}
	})
}

func hammer(t *testing.T, adds int) {
	const goroutines = 64
	n := storm.Size(adds) / goroutines
	var c percpu.Counter
	var threads atomic.Int64
	stop := storm.Start(t, storm.Threads(func() {
		c.Inc()
		c.Add(6)
		threads.Add(1)
	}))
	var wg sync.WaitGroup
	start := time.Now()
	for range goroutines {
		wg.Go(func() {
			for i := range n {
				c.Add(1)
				if i%8192 == 0 {
					runtime.Gosched()
				}
			}
		})
	}
	wg.Wait()
	took := time.Since(start)
	stop()
	want := int64(goroutines*n) + 7*threads.Load()
	if got := c.Sum(); got != want {
		t.Errorf("%d were counted as %d", want, got)
	}
	t.Logf("%d counted in %v, exact: %v", want, took.Round(time.Millisecond), c.Sum() == want)
}

func ExampleCounter() {
	var requests percpu.Counter
	var wg sync.WaitGroup
	for range 10 {
		wg.Go(func() {
			for range 1000 {
				requests.Inc()
			}
		})
	}
	wg.Wait()
	fmt.Println(requests.Sum())
	// Output: 10000
}

func ExampleCounter_Reset() {
	var bytes percpu.Counter
	bytes.Add(1500)
	bytes.Add(500)
	fmt.Println("last second:", bytes.Reset())
	bytes.Add(40)
	fmt.Println("last second:", bytes.Reset())
	// Output:
	// last second: 2000
	// last second: 40
}

func ExampleCounter_String() {
	var hits percpu.Counter
	hits.Add(3)
	fmt.Println(hits.String()) // what expvar.Publish("hits", &hits) shows
	// Output: 3
}
