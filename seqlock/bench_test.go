package seqlock_test

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/quiesce-go/quiesce/seqlock"
)

// BenchmarkLoad models a small record that many read and nobody writes just
// now, in as many goroutines as -cpu says.
func BenchmarkLoad(b *testing.B) {
	benchLoad[[2]uint64](b, "16")
	benchLoad[[8]uint64](b, "64")
	benchLoad[[32]uint64](b, "256")
	benchLoad[[128]uint64](b, "1024")
}

func benchLoad[T any](b *testing.B, size string) {
	v, src := onHeap[seqlock.Value[T]](), onHeap[T]()
	var mu sync.RWMutex
	var p atomic.Pointer[T]
	p.Store(src)
	for _, impl := range []struct {
		name string
		load func(dst *T)
	}{
		{"ours", func(dst *T) { *dst = v.Load() }},
		{"ours-to", func(dst *T) { v.LoadTo(dst) }},
		{"RWMutex", func(dst *T) { mu.RLock(); *dst = *src; mu.RUnlock() }},
		{"Pointer", func(dst *T) { *dst = *p.Load() }},
	} {
		b.Run("impl="+impl.name+"/size="+size, func(b *testing.B) {
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				dst := onHeap[T]()
				for pb.Next() {
					impl.load(dst)
				}
			})
		})
	}
}

// BenchmarkStore models the one writer of such a record.
func BenchmarkStore(b *testing.B) {
	benchStore[[2]uint64](b, "16")
	benchStore[[8]uint64](b, "64")
	benchStore[[32]uint64](b, "256")
	benchStore[[128]uint64](b, "1024")
}

func benchStore[T any](b *testing.B, size string) {
	v, src, dst := onHeap[seqlock.Value[T]](), onHeap[T](), onHeap[T]()
	var mu sync.RWMutex
	var p atomic.Pointer[T]
	inc := func(*T) {}
	for _, impl := range []struct {
		name  string
		store func()
	}{
		{"ours", func() { v.Store(*src) }},
		{"ours-update", func() { v.Update(inc) }},
		{"RWMutex", func() { mu.Lock(); *dst = *src; mu.Unlock() }},
		{"Pointer", func() { c := new(T); *c = *src; p.Store(c) }},
	} {
		b.Run("impl="+impl.name+"/size="+size, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				impl.store()
			}
		})
	}
}

// BenchmarkLoadBesideWriter models readers of 64 bytes beside a writer that
// rests for a time between its writes, or not at all.
func BenchmarkLoadBesideWriter(b *testing.B) {
	if runtime.GOMAXPROCS(0) == 1 {
		b.Skip("readers and writer need a processor each")
	}
	type T [8]uint64
	for _, rest := range []time.Duration{time.Microsecond, 0} {
		v, src := onHeap[seqlock.Value[T]](), onHeap[T]()
		var mu sync.RWMutex
		for _, impl := range []struct {
			name  string
			load  func(dst *T)
			store func(x *T)
		}{
			{"ours", func(dst *T) { *dst = v.Load() }, func(x *T) { v.Store(*x) }},
			{"RWMutex", func(dst *T) { mu.RLock(); *dst = *src; mu.RUnlock() }, func(x *T) { mu.Lock(); *src = *x; mu.Unlock() }},
		} {
			b.Run("impl="+impl.name+"/rest="+rest.String(), func(b *testing.B) {
				b.ReportAllocs()
				x, dst := onHeap[T](), onHeap[T]()
				defer beside(b, rest, func() { x[0]++; impl.store(x) })()
				for b.Loop() {
					impl.load(dst)
				}
			})
		}
	}
}

// beside runs write again and again in another goroutine, with a rest after
// each time, until stop is called, which reports the rate.
func beside(b *testing.B, rest time.Duration, write func()) (stop func()) {
	var (
		stopped atomic.Bool
		count   int
		started = make(chan struct{})
		done    = make(chan struct{})
	)
	go func() {
		defer close(done)
		close(started)
		for ; !stopped.Load(); count++ {
			write()
			if rest > 0 {
				for t := time.Now(); time.Since(t) < rest; {
				}
			}
		}
	}()
	<-started
	t := time.Now()
	return func() {
		d := time.Since(t)
		stopped.Store(true)
		<-done
		b.ReportMetric(float64(count)/d.Seconds(), "writes/s")
	}
}
