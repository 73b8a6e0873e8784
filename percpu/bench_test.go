package percpu_test

import (
	"runtime"
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
// in, beside what one would write without a Counter.
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
