package seqlock_test

import (
	"runtime"
	"testing"
	"time"

	"github.com/quiesce-go/quiesce/seqlock"
)

// BenchmarkAnchor has the names and sizes that other implementations of the
// same operations are measured under, so that a table can hold them together.
// An operation of a few nanoseconds is measured in batches.
func BenchmarkAnchor(b *testing.B) {
	anchorSized[[2]uint64](b, "16B")
	anchorSized[[8]uint64](b, "64B")
	anchorSized[[32]uint64](b, "256B")
	if runtime.GOMAXPROCS(0) > 1 {
		anchorWriter(b)
	}
}

const batch = 1024

// many runs body, which does n operations, in as many goroutines as GOMAXPROCS
// says. Each makes its own by newBody.
func many(b *testing.B, newBody func() func(n int)) {
	b.ReportAllocs()
	if runtime.GOMAXPROCS(0) == 1 {
		one(b, newBody())
		return
	}
	b.RunParallel(func(pb *testing.PB) {
		body := newBody()
		for pb.Next() {
			body(batch)
		}
	})
	perOp(b)
}

func one(b *testing.B, body func(n int)) {
	b.ReportAllocs()
	for t := time.Now(); time.Since(t) < time.Millisecond; {
		body(batch)
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

// onHeap makes a T on the heap, so that each copy into it is made.
func onHeap[T any]() *T {
	p := new(T)
	sink = p
	return p
}

var sink any

func anchorSized[T [2]uint64 | [8]uint64 | [32]uint64](b *testing.B, size string) {
	v := onHeap[seqlock.Value[T]]()
	// The result is left in the caller's frame, where C's reader leaves it.
	b.Run("quiesce/read/"+size, func(b *testing.B) {
		many(b, func() func(int) {
			return func(n int) {
				for range n {
					v.Load()
				}
			}
		})
	})
	// The result is assigned to a variable on the heap.
	b.Run("quiesce-assign/read/"+size, func(b *testing.B) {
		many(b, func() func(int) {
			dst := onHeap[T]()
			return func(n int) {
				for range n {
					*dst = v.Load()
				}
			}
		})
	})
	b.Run("quiesce-to/read/"+size, func(b *testing.B) {
		many(b, func() func(int) {
			dst := onHeap[T]()
			return func(n int) {
				for range n {
					v.LoadTo(dst)
				}
			}
		})
	})
	if runtime.GOMAXPROCS(0) > 1 {
		return
	}
	// A word of the source has just been changed, as in C's writer: a copy by larger units has to wait for that.
	b.Run("quiesce/write/"+size, func(b *testing.B) {
		src := onHeap[T]()
		one(b, func(n int) {
			for i := range n {
				(*src)[0] = uint64(i)
				v.Store(*src)
			}
		})
	})
	b.Run("quiesce-from/write/"+size, func(b *testing.B) {
		src := onHeap[T]()
		one(b, func(n int) {
			for i := range n {
				(*src)[0] = uint64(i)
				v.StoreFrom(src)
			}
		})
	})
	b.Run("quiesce-unchanged/write/"+size, func(b *testing.B) {
		src := onHeap[T]()
		one(b, func(n int) {
			for range n {
				v.Store(*src)
			}
		})
	})
}

// A writer writes 64 bytes once in 1 us, or back to back.
func anchorWriter(b *testing.B) {
	type T [8]uint64
	v := onHeap[seqlock.Value[T]]()
	var x T
	write := func() {
		for i := range x {
			x[i]++
		}
		v.Store(x)
	}
	body := func() func(int) {
		return func(n int) {
			for range n {
				v.Load()
			}
		}
	}
	b.Run("quiesce/read-writer-1us/64B/readers=1", func(b *testing.B) {
		defer beside(b, time.Microsecond, write)()
		one(b, body())
	})
	b.Run("quiesce/read-writer-1us/64B/readers=all", func(b *testing.B) {
		defer beside(b, time.Microsecond, write)()
		many(b, body)
	})
	b.Run("quiesce/read-writer-busy/64B/readers=1", func(b *testing.B) {
		defer beside(b, 0, write)()
		one(b, body())
	})
}
