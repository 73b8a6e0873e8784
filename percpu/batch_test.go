package percpu

import (
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
)

// TestHammerBatchCounter checks that Sum is exact and that Read is never off by
// more than it says, while the counter only grows and when all is quiet.
func TestHammerBatchCounter(t *testing.T) {
	adds := 300_000
	if testing.Short() {
		adds = 20_000
	}
	for _, batch := range []int64{1, 2, 3, 32, 1000} {
		c := NewBatchCounter(batch)
		var (
			wg   sync.WaitGroup
			want atomic.Int64
		)
		for g := range 8 {
			wg.Go(func() {
				rnd := rand.New(rand.NewPCG(uint64(g), uint64(batch)))
				var sum int64
				for range adds / 8 {
					d := rnd.Int64N(2*batch+3) - batch
					c.Add(d)
					sum += d
				}
				want.Add(sum)
			})
		}
		wg.Wait()
		if c.Sum() != want.Load() {
			t.Errorf("batch %d: Sum is %d, want %d", batch, c.Sum(), want.Load())
		}
		off := c.Read() - want.Load()
		if bound := batch * int64(runtime.NumCPU()); off <= -bound || off >= bound {
			t.Errorf("batch %d: Read is off by %d", batch, off)
		}
		for _, d := range []int64{-1 << 40, -batch, -1, 0, 1, batch, 1 << 40} {
			got, exact := c.Compare(want.Load()+d), 0
			if d != 0 {
				exact = map[bool]int{true: -1, false: 1}[d > 0]
			}
			if got != exact {
				t.Errorf("batch %d: Compare with the value plus %d is %d", batch, d, got)
			}
		}
	}
}

// TestHammerBatchCounterTryAdd: TryAdd never passes the limit, and reaches it, also where a part of the value
// is in remainders. Twin: overlimit.
func TestHammerBatchCounterTryAdd(t *testing.T) {
	const limit = 10_000
	c := NewBatchCounter(64)
	var (
		wg   sync.WaitGroup
		made atomic.Int64
	)
	const rest = 7 // less than what Add moves
	c.Add(rest)
	made.Add(rest)
	for range 8 {
		wg.Go(func() {
			for range limit {
				if c.TryAdd(limit, 1) {
					made.Add(1)
				}
				if n := c.Sum(); n > limit {
					t.Errorf("%d is past the limit", n)
					return
				}
			}
		})
	}
	wg.Wait()
	if made.Load() != limit || c.Sum() != limit {
		t.Errorf("%d TryAdds succeeded, the sum is %d, the limit %d", made.Load(), c.Sum(), limit)
	}
	if !c.TryAdd(0, -limit) || c.TryAdd(0, -1) {
		t.Error("TryAdd downwards")
	}
}
