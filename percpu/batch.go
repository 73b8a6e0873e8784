package percpu

import (
	"math/bits"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/quiesce-go/quiesce/asm"
)

// A BatchCounter is a sharded counter whose approximate value is cheap to read:
// each CPU keeps a small remainder to itself and moves it to a shared count when
// it grows to a batch. It is the kernel's percpu_counter.
//
// BatchCounters are made by NewBatchCounter, may be used by any number of
// goroutines and must not be copied.
//
// Like a Counter's, its operations do not order other memory.
type BatchCounter struct {
	batch int64 // what Read may be off by, for each CPU
	bound int64 // remainders stay below it

	_     [64]byte
	total atomic.Int64 // without the remainders
	_     [56]byte

	rest asm.Block  // each column's remainder
	mu   sync.Mutex // held to move a remainder, so that at most one is on its way
}

// NewBatchCounter returns a BatchCounter that starts at 0. A larger batch makes
// Add cheaper and Read less exact; 32 times the number of CPUs is the kernel's
// choice. It panics if batch < 1.
func NewBatchCounter(batch int64) *BatchCounter {
	if batch < 1 {
		panic("percpu: NewBatchCounter with a batch below 1")
	}
	// There are two columns for each CPU, and one remainder may be on its way:
	// with a third of the batch in each, Read is off by less than batch*CPUs.
	c := &BatchCounter{batch: batch, bound: max(1, batch/3)}
	c.rest.Alloc(1)
	return c
}

// Add adds delta. It takes about 3 ns while the remainder is small, and an
// atomic add or a lock when it is not. It does not allocate.
func (c *BatchCounter) Add(delta int64) {
	if _, ok := c.rest.AddWithin(0, delta, c.bound); !ok {
		c.addSlow(delta)
	}
}

func (c *BatchCounter) addSlow(delta int64) {
	if delta <= -c.bound || delta >= c.bound {
		c.total.Add(delta)
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for {
		col := asm.Column()
		rest := c.rest.Load(col, 0)
		if c.rest.CompareAndSwap(col, 0, rest, 0) || mutant == mutantLostRest {
			c.total.Add(rest + delta)
			return
		}
		if _, ok := c.rest.AddWithin(0, delta, c.bound); ok { // on another CPU now, perhaps
			return
		}
	}
}

// Read returns the approximate value, which is off by less than the batch times
// the number of CPUs. It is one load.
func (c *BatchCounter) Read() int64 { return c.total.Load() }

// Sum returns the exact value: every Add that happens before it is counted, and
// each Add that runs beside it is counted or not. It takes a lock and reads a
// word for each CPU.
func (c *BatchCounter) Sum() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.sumLocked()
}

// sumLocked is Sum. The caller holds mu.
func (c *BatchCounter) sumLocked() int64 { return c.total.Load() + c.rest.Sum(0) }

// Compare returns -1, 0 or 1 as the value is below, equal to or above rhs. It is
// as cheap as Read unless the two are so close that it must be exact.
func (c *BatchCounter) Compare(rhs int64) int {
	n := c.Read()
	// |rhs-n| as an unsigned number, which the difference of two int64s fits in.
	apart := uint64(rhs) - uint64(n)
	if rhs < n {
		apart = -apart
	}
	if hi, margin := bits.Mul64(uint64(c.batch), uint64(asm.Columns())); hi != 0 || apart <= margin {
		n = c.Sum()
	}
	switch {
	case n < rhs:
		return -1
	case n > rhs:
		return 1
	}
	return 0
}

// TryAdd adds delta unless that would take the value past limit: above it with a
// positive delta, below it with a negative one. It reports whether it did. Of
// TryAdds alone, however many run at once, none takes the value past its limit;
// an Add that runs beside it counts as made later. It takes a lock and reads a
// word for each CPU.
func (c *BatchCounter) TryAdd(limit, delta int64) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	sum := c.sumLocked()
	if mutant == mutantOverLimit {
		sum = c.Read()
	}
	switch next := sum + delta; {
	case delta > 0 && (next > limit || next < sum), delta < 0 && (next < limit || next > sum):
		return false
	}
	c.total.Add(delta)
	return true
}

// String returns Sum in decimal, so that a *BatchCounter is an expvar.Var.
func (c *BatchCounter) String() string { return strconv.FormatInt(c.Sum(), 10) }
