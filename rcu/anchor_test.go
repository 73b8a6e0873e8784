package rcu_test

import (
	"context"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/quiesce-go/quiesce/rcu"
)

// BenchmarkAnchor measures what the benchmarks of other implementations measure, under the same names:
// implementation, operation, and where it is not the default, who is busy.
func BenchmarkAnchor(b *testing.B) {
	for _, kind := range []string{"reader", "guard"} {
		anchors(b, kind)
	}
	anchorCall(b)
}

// many says whether the benchmarks that need several CPUs can run.
func many() bool { return runtime.GOMAXPROCS(0) > 1 }

func anchors(b *testing.B, kind string) {
	const (
		batch = 1024
		small = 64
	)
	d := rcu.New()
	var p rcu.Pointer[payload]
	p.Store(payloads[0])
	pair := func() func(int) {
		if kind == "guard" {
			return func(n int) {
				for range n {
					g := d.ReadLock()
					g.Unlock()
				}
			}
		}
		r := d.NewReader()
		return func(n int) {
			for range n {
				r.Lock()
				r.Unlock()
			}
		}
	}
	deref := func() func(int) {
		if kind == "guard" {
			return func(n int) {
				var s uint64
				for range n {
					g := d.ReadLock()
					s += p.Load().value
					g.Unlock()
				}
				keep(s)
			}
		}
		r := d.NewReader()
		return func(n int) {
			var s uint64
			for range n {
				r.Lock()
				s += p.Load().value
				r.Unlock()
			}
			keep(s)
		}
	}
	synchronize := func() { d.Synchronize(bg) }
	i := 0
	update := func() {
		i++
		p.Store(payloads[i&1])
		d.Synchronize(bg)
	}
	name := "quiesce-" + kind
	b.Run(name+"/readlock-pair", func(b *testing.B) { perGoroutineN(b, batch, pair) })
	b.Run(name+"/readlock-deref", func(b *testing.B) { perGoroutineN(b, batch, deref) })
	if !many() {
		b.Run(name+"/synchronize/idle=1", func(b *testing.B) {
			pair()(1)
			latencies(b, synchronize)
		})
		return
	}
	b.Run(name+"/readlock-pair-writer/readers=1", func(b *testing.B) {
		defer background(b, synchronize)()
		one(b, small, pair)
	})
	b.Run(name+"/readlock-pair-writer/readers=all", func(b *testing.B) {
		defer background(b, synchronize)()
		perGoroutineN(b, small, pair)
	})
	b.Run(name+"/readlock-deref-writer/readers=1", func(b *testing.B) {
		defer background(b, update)()
		one(b, small, deref)
	})
	b.Run(name+"/readlock-deref-writer/readers=all", func(b *testing.B) {
		defer background(b, update)()
		perGoroutineN(b, small, deref)
	})
	busy := func() func() { return sectionLoop(d, &p, kind) }
	b.Run(name+"/synchronize/busy=1", func(b *testing.B) {
		defer readers(1, busy)()
		latencies(b, synchronize)
	})
	b.Run(name+"/synchronize/busy=all", func(b *testing.B) {
		defer readers(runtime.GOMAXPROCS(0), busy)()
		latencies(b, synchronize)
	})
}

func anchorCall(b *testing.B) {
	const ring = 1 << 20
	type node struct {
		head    rcu.Head
		payload uint64
	}
	nodes := make([]node, ring)
	for i := range nodes {
		nodes[i].payload = 1
	}
	d := rcu.New()
	var (
		sent    uint64        // the benchmark's
		ran     uint64        // the worker's
		invoked atomic.Uint64 // ran, now and then: an atomic store for each would be much of what is measured
	)
	fn := func(*rcu.Head) {
		if ran++; ran%64 == 0 {
			invoked.Store(ran)
		}
	}
	enqueue := func(n uint64) {
		for range n {
			// Half the ring, since those in one batch may run in another order.
			for sent-invoked.Load() >= ring/2 {
				time.Sleep(100 * time.Microsecond)
			}
			d.CallHead(&nodes[sent%ring].head, fn)
			sent++
		}
	}
	b.Run("quiesce-head/call", func(b *testing.B) {
		const batch = 1 << 16
		b.ReportAllocs()
		for b.Loop() {
			enqueue(batch)
		}
		d.Barrier(context.Background())
		b.StopTimer()
		ns := float64(b.Elapsed().Nanoseconds()) / float64(b.N) / batch
		b.ReportMetric(ns, "ns/op")
		b.ReportMetric(1e9/ns, "callbacks/s")
	})
	b.Run("quiesce-head/call-enqueue", func(b *testing.B) {
		const batch = 1 << 16
		for b.Loop() {
			enqueue(batch)
			b.StopTimer()
			d.Barrier(context.Background())
			b.StartTimer()
		}
		b.StopTimer()
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/batch, "ns/op")
	})
}

// one measures body in one goroutine, whatever GOMAXPROCS is.
func one(b *testing.B, batch int, body func() func(int)) {
	f := body()
	for end := time.Now().Add(time.Millisecond); time.Now().Before(end); {
		f(batch)
	}
	for b.Loop() {
		f(batch)
	}
	b.StopTimer()
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(batch), "ns/op")
}

// latencies measures f alone, and reports quantiles.
func latencies(b *testing.B, f func()) {
	var all []time.Duration
	t := time.Now()
	for b.Loop() {
		f()
		now := time.Now()
		all = append(all, now.Sub(t))
		t = now
	}
	b.StopTimer()
	slices.Sort(all)
	b.ReportMetric(float64(all[len(all)/2].Nanoseconds()), "p50")
	b.ReportMetric(float64(all[len(all)*99/100].Nanoseconds()), "p99")
}

// background runs f again and again beside the benchmark.
func background(b *testing.B, f func()) (stop func()) {
	var count atomic.Int64
	t := time.Now()
	end := readers(1, func() func() {
		return func() {
			f()
			count.Add(1)
		}
	})
	return func() {
		n, took := count.Load(), time.Since(t)
		end()
		b.ReportMetric(float64(n)/took.Seconds(), "writes/s")
	}
}
