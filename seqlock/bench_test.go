package seqlock_test

import (
	"fmt"
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
	benchLoad[[1]uint64](b, 8)
	benchLoad[[2]uint64](b, 16)
	benchLoad[[4]uint64](b, 32)
	benchLoad[[8]uint64](b, 64)
	benchLoad[[16]uint64](b, 128)
	benchLoad[[32]uint64](b, 256)
	benchLoad[[64]uint64](b, 512)
	benchLoad[[128]uint64](b, 1024)
}

func benchLoad[T any](b *testing.B, size int) {
	for _, impl := range rivals[T]() {
		b.Run(fmt.Sprintf("size=%d/impl=%s", size, impl.name), func(b *testing.B) {
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

// A rival is a record that load copies to the heap, and store from there.
type rival[T any] struct {
	name  string
	load  func(dst *T)
	store func(src *T)
}

func rivals[T any]() []rival[T] {
	v, l := onHeap[seqlock.Value[T]](), onHeap[seqlock.Latch[T]]()
	var (
		mu      sync.RWMutex
		guarded = onHeap[T]()
		p       atomic.Pointer[T]
	)
	p.Store(onHeap[T]())
	return []rival[T]{
		{"Value", func(dst *T) { *dst = v.Load() }, func(src *T) { v.Store(*src) }},
		{"Value-to", func(dst *T) { v.LoadTo(dst) }, func(src *T) { v.Store(*src) }},
		{"Latch-to", func(dst *T) { l.LoadTo(dst) }, func(src *T) { l.Store(*src) }},
		{"RWMutex", func(dst *T) { mu.RLock(); *dst = *guarded; mu.RUnlock() },
			func(src *T) { mu.Lock(); *guarded = *src; mu.Unlock() }},
		{"Pointer", func(dst *T) { *dst = *p.Load() },
			func(src *T) { c := new(T); *c = *src; p.Store(c) }},
	}
}

// BenchmarkStore models the one writer of such a record.
func BenchmarkStore(b *testing.B) {
	benchStore[[1]uint64](b, 8)
	benchStore[[2]uint64](b, 16)
	benchStore[[4]uint64](b, 32)
	benchStore[[8]uint64](b, 64)
	benchStore[[16]uint64](b, 128)
	benchStore[[32]uint64](b, 256)
	benchStore[[64]uint64](b, 512)
	benchStore[[128]uint64](b, 1024)
}

func benchStore[T any](b *testing.B, size int) {
	v := onHeap[seqlock.Value[T]]()
	inc := func(*T) {}
	all := append(rivals[T](), rival[T]{name: "Value-update", store: func(*T) { v.Update(inc) }})
	for _, impl := range all {
		if impl.name == "Value-to" {
			continue // Value's Store again
		}
		b.Run(fmt.Sprintf("size=%d/impl=%s", size, impl.name), func(b *testing.B) {
			b.ReportAllocs()
			src := onHeap[T]()
			for b.Loop() {
				impl.store(src)
			}
		})
	}
}

// BenchmarkLoadBesideWriter models one reader beside a writer that rests for a
// time between its writes, or not at all.
func BenchmarkLoadBesideWriter(b *testing.B) {
	if runtime.GOMAXPROCS(0) == 1 {
		b.Skip("reader and writer need a processor each")
	}
	benchLoadBeside[[1]uint64](b, 8)
	benchLoadBeside[[2]uint64](b, 16)
	benchLoadBeside[[4]uint64](b, 32)
	benchLoadBeside[[8]uint64](b, 64)
	benchLoadBeside[[16]uint64](b, 128)
	benchLoadBeside[[32]uint64](b, 256)
	benchLoadBeside[[64]uint64](b, 512)
	benchLoadBeside[[128]uint64](b, 1024)
}

func benchLoadBeside[T any](b *testing.B, size int) {
	for _, rest := range []time.Duration{10 * time.Microsecond, time.Microsecond, 0} {
		for _, impl := range rivals[T]() {
			b.Run(fmt.Sprintf("size=%d/rest=%v/impl=%s", size, rest, impl.name), func(b *testing.B) {
				b.ReportAllocs()
				src, dst := onHeap[T](), onHeap[T]()
				defer beside(b, rest, func() { impl.store(src) })()
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
