package percpu_test

import (
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/quiesce-go/quiesce/asm"
	"github.com/quiesce-go/quiesce/internal/tier"
	"github.com/quiesce-go/quiesce/percpu"
)

// batch is the number of operations in a step: one of a few nanoseconds takes no
// longer than the step itself would.
const batch = 1024

// parallel measures body in as many goroutines as GOMAXPROCS says, and reports
// the time of one of the n operations that it is asked for.
func parallel(b *testing.B, body func(n int)) {
	if runtime.GOMAXPROCS(0) == 1 {
		single(b, body)
		return
	}
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			body(batch)
		}
	})
	perOp(b)
}

// single is parallel in one goroutine.
func single(b *testing.B, body func(n int)) {
	b.ReportAllocs()
	for t := time.Now(); time.Since(t) < time.Millisecond; {
		body(batch) // fills the caches
	}
	for b.Loop() {
		body(batch)
	}
	perOp(b)
}

func perOp(b *testing.B) {
	b.StopTimer()
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/batch, "ns/op")
}

// inTier measures in a tier, or says that it does not work here.
func inTier(b *testing.B, want tier.Tier) {
	now, undo := tier.Switch(want)
	b.Cleanup(undo)
	if now != want {
		b.Skipf("the %v tier does not work here, the %v one does", want, now)
	}
}

var tiers = []struct {
	name string
	tier tier.Tier
}{{"rseq", tier.RSEQ}, {"pin", tier.Pinned}, {"shared", tier.Shared}}

var sink int

//go:noinline
func keep(s int) { sink = s }

// BenchmarkAnchor has the names under which other implementations of the same
// operations are measured, so that a table can hold them together.
func BenchmarkAnchor(b *testing.B) {
	for _, t := range tiers {
		b.Run("quiesce-"+t.name+"/inc", func(b *testing.B) {
			inTier(b, t.tier)
			var c percpu.Counter
			parallel(b, func(n int) {
				for range n {
					c.Inc()
				}
			})
		})
		b.Run("quiesce-"+t.name+"/sum", func(b *testing.B) {
			inTier(b, t.tier)
			var c percpu.Counter
			c.Inc()
			single(b, func(n int) {
				s := 0
				for range n {
					s += int(c.Sum())
				}
				keep(s)
			})
		})
		b.Run("quiesce-"+t.name+"-words/inc", func(b *testing.B) {
			inTier(b, t.tier)
			w := percpu.NewWords(8)
			parallel(b, func(n int) {
				for range n {
					w.Add(3, 1)
				}
			})
		})
	}
	b.Run("quiesce-rseq/cpu-number", func(b *testing.B) {
		inTier(b, tier.RSEQ)
		single(b, func(n int) {
			s := 0
			for range n {
				s += asm.CPU()
			}
			keep(s)
		})
	})
}

// BenchmarkCounterAdd models a counter of requests that every goroutine counts
// in, beside what one would write without a Counter: one word, a word for each CPU that
// is chosen by its number from each source, a lock.
func BenchmarkCounterAdd(b *testing.B) {
	for _, t := range tiers {
		b.Run("impl=quiesce-"+t.name, func(b *testing.B) {
			inTier(b, t.tier)
			var c percpu.Counter
			parallel(b, func(n int) {
				for range n {
					c.Add(1)
				}
			})
		})
	}
	b.Run("impl=atomic.Int64", func(b *testing.B) {
		var c struct {
			_ [128]byte
			n atomic.Int64
			_ [128]byte
		}
		parallel(b, func(n int) {
			for range n {
				c.n.Add(1)
			}
		})
	})
	for _, source := range asm.Sources() {
		b.Run("impl=atomic-by-"+source.String(), func(b *testing.B) {
			cells := make([]struct {
				n atomic.Int64
				_ [120]byte
			}, 256)
			parallel(b, func(n int) {
				for range n {
					cpu, _ := asm.CPUBy(source)
					cells[cpu%len(cells)].n.Add(1)
				}
			})
		})
	}
	b.Run("impl=Mutex", func(b *testing.B) {
		var c struct {
			sync.Mutex
			n int
		}
		parallel(b, func(n int) {
			for range n {
				c.Lock()
				c.n++
				c.Unlock()
			}
		})
	})
}

// BenchmarkWordsSwap models an update that is more than an addition: the pattern
// in the comment of Words.
func BenchmarkWordsSwap(b *testing.B) {
	for _, t := range tiers {
		b.Run("impl=quiesce-"+t.name, func(b *testing.B) {
			inTier(b, t.tier)
			w := percpu.NewWords(1)
			parallel(b, func(n int) {
				for range n {
					for {
						cpu := w.CPU()
						old := w.Load(cpu, 0)
						if w.CompareAndSwap(cpu, 0, old, old^1) {
							break
						}
					}
				}
			})
		})
	}
	b.Run("impl=atomic.Int64", func(b *testing.B) {
		var w atomic.Int64
		parallel(b, func(n int) {
			for range n {
				for {
					old := w.Load()
					if w.CompareAndSwap(old, old^1) {
						break
					}
				}
			}
		})
	})
}

// BenchmarkRWMutex models data that is looked at all the time and changed now and then.
func BenchmarkRWMutex(b *testing.B) {
	type locker interface {
		RLock()
		RUnlock()
		Lock()
		Unlock()
	}
	mixed := func(b *testing.B, l locker, writes int) {
		parallel(b, func(n int) {
			for i := range n {
				if writes > 0 && i%writes == 0 {
					l.Lock()
					l.Unlock()
				} else {
					l.RLock()
					l.RUnlock()
				}
			}
		})
	}
	b.Run("impl=ours/writes=0", func(b *testing.B) {
		var rw percpu.RWMutex
		parallel(b, func(n int) {
			for range n {
				rw.RLock()
				rw.RUnlock()
			}
		})
	})
	b.Run("impl=sync/writes=0", func(b *testing.B) {
		var rw sync.RWMutex
		parallel(b, func(n int) {
			for range n {
				rw.RLock()
				rw.RUnlock()
			}
		})
	})
	for _, one := range []int{1000, 100} {
		name := "/writes=1:" + strconv.Itoa(one)
		b.Run("impl=ours"+name, func(b *testing.B) { mixed(b, new(percpu.RWMutex), one) })
		b.Run("impl=sync"+name, func(b *testing.B) { mixed(b, new(sync.RWMutex), one) })
	}
}

// BenchmarkBatchCounter models a limit that is checked whenever something is counted.
func BenchmarkBatchCounter(b *testing.B) {
	b.Run("impl=ours", func(b *testing.B) {
		c := percpu.NewBatchCounter(64)
		parallel(b, func(n int) {
			full := 0
			for range n {
				if c.Add(1); c.Read() < 0 {
					full++
				}
			}
			keep(full)
		})
	})
	b.Run("impl=atomic.Int64", func(b *testing.B) {
		var c atomic.Int64
		parallel(b, func(n int) {
			full := 0
			for range n {
				if c.Add(1) < 0 {
					full++
				}
			}
			keep(full)
		})
	})
}

// BenchmarkRef models an object that is borrowed for each request.
func BenchmarkRef(b *testing.B) {
	b.Run("impl=ours", func(b *testing.B) {
		r := percpu.NewRef(func() {})
		parallel(b, func(n int) {
			for range n {
				r.Get()
				r.Put()
			}
		})
	})
	b.Run("impl=atomic.Int64", func(b *testing.B) {
		var r atomic.Int64
		r.Add(1)
		parallel(b, func(n int) {
			for range n {
				r.Add(1)
				if r.Add(-1) == 0 {
					b.Error("no references")
				}
			}
		})
	})
}
