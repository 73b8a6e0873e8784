package percpu_test

import (
	"sync"
	"testing"

	"github.com/quiesce-go/quiesce/percpu"
)

// BenchmarkPool models buffers that are taken for a request and given back after it.
func BenchmarkPool(b *testing.B) {
	type buffer [64]byte
	b.Run("impl=ours", func(b *testing.B) {
		p := percpu.Pool[*buffer]{New: func() *buffer { return new(buffer) }}
		parallel(b, func(n int) {
			for range n {
				p.Put(p.Get())
			}
		})
	})
	b.Run("impl=sync.Pool", func(b *testing.B) {
		p := sync.Pool{New: func() any { return new(buffer) }}
		parallel(b, func(n int) {
			for range n {
				p.Put(p.Get().(*buffer))
			}
		})
	})
	b.Run("impl=channel", func(b *testing.B) {
		c := make(chan *buffer, 64)
		parallel(b, func(n int) {
			for range n {
				var v *buffer
				select {
				case v = <-c:
				default:
					v = new(buffer)
				}
				select {
				case c <- v:
				default:
				}
			}
		})
	})
}
