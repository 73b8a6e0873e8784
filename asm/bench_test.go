package asm

import (
	"runtime"
	"sync/atomic"
	"testing"
	"time"
)

// The operations take a few nanoseconds, so a step measures batch of them.
const batch = 1024

func single(b *testing.B, body func(n int)) {
	b.ReportAllocs()
	for t := time.Now(); time.Since(t) < time.Millisecond; {
		body(batch) // fills the caches
	}
	for b.Loop() {
		body(batch)
	}
	b.StopTimer()
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/batch, "ns/op")
}

var sink int

//go:noinline
func keep(s int) { sink = s }

// BenchmarkCPU compares the ways to read the CPU number. source=best is CPU
// itself; the others have CPUBy's choice before them.
func BenchmarkCPU(b *testing.B) {
	b.Run("source=best", func(b *testing.B) {
		single(b, func(n int) {
			s := 0
			for range n {
				s += CPU()
			}
			keep(s)
		})
	})
	for _, source := range Sources() {
		b.Run("source="+source.String(), func(b *testing.B) {
			single(b, func(n int) {
				s := 0
				for range n {
					cpu, _ := CPUBy(source)
					s += cpu
				}
				keep(s)
			})
		})
	}
	b.Run("source=node", func(b *testing.B) {
		single(b, func(n int) {
			s := 0
			for range n {
				_, node := CPUNode()
				s += node
			}
			keep(s)
		})
	})
}

func BenchmarkCycles(b *testing.B) {
	for name, f := range map[string]func() uint64{"ordered=false": Cycles, "ordered=true": CyclesOrdered} {
		b.Run(name, func(b *testing.B) {
			single(b, func(n int) {
				s := 0
				for range n {
					s += int(f())
				}
				keep(s)
			})
		})
	}
}

func BenchmarkPause(b *testing.B) {
	single(b, func(n int) {
		for range n {
			Pause()
		}
	})
}

// BenchmarkFence is the updater's half of an asymmetric fence while the other
// CPUs are idle, and while they run goroutines of this process.
func BenchmarkFence(b *testing.B) {
	if err := Membarrier(); err != nil {
		b.Skip(err)
	}
	fence := func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			Fence()
		}
	}
	b.Run("others=idle", fence)
	b.Run("others=busy", func(b *testing.B) {
		var stop atomic.Bool
		defer stop.Store(true)
		for range runtime.GOMAXPROCS(0) - 1 {
			go func() {
				for !stop.Load() {
				}
			}()
		}
		fence(b)
	})
}

// BenchmarkBlock are the operations of a Block in the best tier of this machine.
func BenchmarkBlock(b *testing.B) {
	var w Block
	w.Alloc(16)
	c := made()
	for _, op := range []struct {
		name string
		body func(n int)
	}{
		{"Add", func(n int) {
			for range n {
				w.Add(0, 1)
			}
		}},
		{"AddShared", func(n int) {
			for range n {
				w.AddShared(0, 1)
			}
		}},
		{"Column", func(n int) {
			for range n {
				Column()
			}
		}},
		{"CompareAndSwap", func(n int) {
			for range n {
				w.CompareAndSwap(Column(), 1, 0, 0)
			}
		}},
		{"TryLock", func(n int) {
			for range n {
				l, _ := w.TryLock(14)
				l.Unlock()
			}
		}},
		{"Claim", func(n int) {
			for range n {
				if w := c.Claim(1, none); w != nil {
					StoreRelease(w, 0)
				}
			}
		}},
		{"CompareAndSwapTwo", func(n int) {
			for range n {
				w.CompareAndSwapTwo(Column(), 1, 0, 0, 2, 0)
			}
		}},
		{"PushPop", func(n int) {
			for range n {
				w.Push(3, 8, 5)
				w.Pop(3)
			}
		}},
		{"AddWithin", func(n int) {
			for range n {
				w.AddWithin(12, 1, 1<<62)
			}
		}},
		{"Sum", func(n int) {
			s := 0
			for range n {
				s += int(w.Sum(0))
			}
			keep(s)
		}},
	} {
		b.Run("op="+op.name, func(b *testing.B) { single(b, op.body) })
	}
}
