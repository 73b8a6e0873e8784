package rcu_test

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/quiesce-go/quiesce/rcu"
)

type payload struct {
	value uint64
	_     [120]byte
}

var (
	payloads = [2]*payload{{value: 1}, {value: 2}}
	plain    = payloads[0]
	sink     uint64
)

// keep makes s used, and what it was read from is read anew.
//
//go:noinline
func keep(s uint64) { sink = s }

// BenchmarkSection is a section around the load of a pointer and of what it points
// to, in a goroutine of each P.
func BenchmarkSection(b *testing.B) {
	var p rcu.Pointer[payload]
	p.Store(payloads[0])
	b.Run("impl=none", func(b *testing.B) {
		perGoroutine(b, func() func(int) {
			return func(n int) {
				var s uint64
				for range n {
					s += p.Load().value
				}
				keep(s)
			}
		})
	})
	b.Run("impl=reader", func(b *testing.B) {
		d := rcu.New()
		perGoroutine(b, func() func(int) {
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
		})
	})
	b.Run("impl=guard", func(b *testing.B) {
		d := rcu.New()
		perGoroutine(b, func() func(int) {
			return func(n int) {
				var s uint64
				for range n {
					g := d.ReadLock()
					s += p.Load().value
					g.Unlock()
				}
				keep(s)
			}
		})
	})
	b.Run("impl=RWMutex", func(b *testing.B) {
		var mu sync.RWMutex
		perGoroutine(b, func() func(int) {
			return func(n int) {
				var s uint64
				for range n {
					mu.RLock()
					s += plain.value
					mu.RUnlock()
				}
				keep(s)
			}
		})
	})
}

// perGoroutine measures what body returns in a goroutine of each P, in batches, since one operation is
// no longer than a step of b.Loop.
func perGoroutine(b *testing.B, body func() func(n int)) { perGoroutineN(b, 1024, body) }

func perGoroutineN(b *testing.B, batch int, body func() func(n int)) {
	b.ReportAllocs()
	if !many() {
		one(b, batch, body)
		return
	}
	b.RunParallel(func(pb *testing.PB) {
		f := body()
		for pb.Next() {
			f(batch)
		}
	})
	b.StopTimer()
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(batch), "ns/op")
}

// BenchmarkSynchronize is one updater that waits for grace periods, beside readers.
func BenchmarkSynchronize(b *testing.B) {
	ctx := context.Background()
	d := rcu.New()
	var p rcu.Pointer[payload]
	p.Store(payloads[0])
	run := func(b *testing.B, f func()) {
		b.ReportAllocs()
		for b.Loop() {
			f()
		}
	}
	wait := func() { d.Synchronize(ctx) }
	b.Run("readers=none/impl=rcu", func(b *testing.B) { run(b, wait) })
	b.Run("readers=idle/impl=rcu", func(b *testing.B) {
		r := d.NewReader()
		defer r.Close()
		r.Lock()
		r.Unlock()
		d.ReadLock().Unlock()
		run(b, wait)
	})
	for _, kind := range []string{"reader", "guard"} {
		for _, n := range []int{1, runtime.GOMAXPROCS(0)} {
			name := "readers=1/impl=" + kind
			if n > 1 {
				name = "readers=all/impl=" + kind
			}
			b.Run(name, func(b *testing.B) {
				defer readers(n, func() func() { return sectionLoop(d, &p, kind) })()
				run(b, wait)
			})
		}
	}
	for _, n := range []int{1, runtime.GOMAXPROCS(0)} {
		name := "readers=1/impl=RWMutex"
		if n > 1 {
			name = "readers=all/impl=RWMutex"
		}
		b.Run(name, func(b *testing.B) {
			var mu sync.RWMutex
			defer readers(n, func() func() {
				return func() {
					for range 64 {
						mu.RLock()
						mu.RUnlock()
					}
				}
			})()
			run(b, func() {
				mu.Lock()
				mu.Unlock()
			})
		})
	}
}

// sectionLoop returns what a busy reader does again and again.
func sectionLoop(d *rcu.Domain, p *rcu.Pointer[payload], kind string) func() {
	if kind == "guard" {
		return func() {
			var s uint64
			for range 64 {
				g := d.ReadLock()
				s += p.Load().value
				g.Unlock()
			}
			_ = s
		}
	}
	r := d.NewReader()
	return func() {
		var s uint64
		for range 64 {
			r.Lock()
			s += p.Load().value
			r.Unlock()
		}
		_ = s
	}
}

// readers runs what body returns again and again in n goroutines.
func readers(n int, body func() func()) (stop func()) {
	var (
		done atomic.Bool
		wg   sync.WaitGroup
	)
	for range n {
		started := make(chan struct{})
		wg.Go(func() {
			f := body()
			close(started)
			for !done.Load() {
				f()
			}
		})
		<-started
	}
	return func() {
		done.Store(true)
		wg.Wait()
	}
}

// BenchmarkCallHead queues and runs callbacks, from one goroutine: what an updater of a
// table of many objects does.
func BenchmarkCallHead(b *testing.B) {
	type object struct {
		head rcu.Head
		_    [64]byte
	}
	const ring = 1 << 16
	objects := make([]object, ring)
	b.Run("impl=rcu", func(b *testing.B) {
		d := rcu.New()
		var ran atomic.Uint64
		n := uint64(0)
		fn := func(*rcu.Head) { ran.Store(ran.Load() + 1) }
		b.ReportAllocs()
		for b.Loop() {
			// Half the ring, since those in one batch may run in another order.
			for n-ran.Load() >= ring/2 {
				time.Sleep(20 * time.Microsecond)
			}
			d.CallHead(&objects[n%ring].head, fn)
			n++
		}
		d.Barrier(context.Background())
		if ran.Load() != n {
			b.Fatalf("%d callbacks of %d", ran.Load(), n)
		}
	})
	b.Run("impl=Call", func(b *testing.B) {
		d := rcu.New()
		var ran atomic.Uint64
		n := uint64(0)
		fn := func() { ran.Store(ran.Load() + 1) }
		b.ReportAllocs()
		for b.Loop() {
			for n-ran.Load() >= ring {
				time.Sleep(20 * time.Microsecond)
			}
			d.Call(fn)
			n++
		}
		d.Barrier(context.Background())
	})
}
