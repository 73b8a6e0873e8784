package seqlock

import (
	"runtime"
	"sync/atomic"

	"github.com/quiesce-go/quiesce/asm"
)

// Count is a sequence counter: it tells a reader whether a writer was at work
// while it read. It guards data that its user keeps elsewhere and loads and
// stores with sync/atomic.
//
// The zero Count is ready. A Count must not be copied after first use.
//
// Any number of goroutines may read. Writers are the user's to serialise: at
// most one may be between WriteBegin and WriteEnd. A user who has no lock for
// that takes a [Lock] or a [Value].
//
//	writer                     reader
//	c.WriteBegin()             for {
//	x.Store(1)                     s := c.Begin()
//	y.Store(1)                     a, b := x.Load(), y.Load()
//	c.WriteEnd()                   if !c.Retry(s) { return a, b }
//	                           }
//
// A WriteEnd synchronizes before each Begin that returns its sequence or a
// later one. When Retry returns false, no write has begun and ended, and none
// was under way, between the Begin and the Retry: what was loaded in between
// was there at one moment. When it returns true, what was loaded is to be
// thrown away before anything is done with it.
//
// The counter has 64 bits and no way back, so a sequence is never seen twice.
// Reading costs two atomic loads, a write two atomic read-modify-writes.
// Nothing allocates.
//
// The algorithm is the seqcount of Linux, by way of L. Lamport, "Concurrent
// Reading and Writing" (1977).
type Count struct {
	// Odd while a writer is inside. Only the writer changes it, upwards.
	seq atomic.Uint64
}

// Begin starts a read and returns the sequence to give to Retry. It waits
// while a write is under way, first spinning, then giving way to other
// goroutines; inside the caller's own write it would wait for ever.
func (c *Count) Begin() uint64 {
	if s := c.seq.Load(); s&1 == 0 { // Pairs with the add in WriteEnd.
		return s
	}
	return c.begin()
}

func (c *Count) begin() uint64 {
	for i := 0; ; i++ {
		if s, ok := c.TryBegin(); ok {
			return s
		}
		relax(i)
	}
}

// TryBegin is Begin for a reader that must not wait: it reports false while a
// write is under way, and then returns a sequence for which Retry is true.
func (c *Count) TryBegin() (seq uint64, ok bool) {
	s := c.seq.Load() // Pairs with the add in WriteEnd.
	return s &^ 1, s&1 == 0
}

// Retry reports whether a write has begun since the Begin that returned seq.
// It never waits.
func (c *Count) Retry(seq uint64) bool {
	// The reader's loads are atomic and so cannot pass this one. If one of
	// them saw what a writer stored, this one sees that writer's WriteBegin.
	return c.seq.Load() != seq // Pairs with the add in WriteBegin.
}

// WriteBegin starts a write. It panics if one is under way: writes do not nest,
// and writers that run side by side need a lock.
func (c *Count) WriteBegin() {
	s := c.seq.Load()
	// The writer's stores are atomic and so cannot pass this add.
	if s&1 != 0 || !c.seq.CompareAndSwap(s, s+1) { // Pairs with Retry.
		panic("seqlock: WriteBegin of a Count that is inside a write")
	}
}

// WriteEnd ends the write that WriteBegin began. It panics if there is none.
func (c *Count) WriteEnd() {
	s := c.seq.Load()
	if s&1 == 0 || !c.seq.CompareAndSwap(s, s+1) { // Pairs with Begin.
		panic("seqlock: WriteEnd of a Count without a WriteBegin")
	}
}

// spins is how often a waiting goroutine pauses before it gives way. A write
// takes tens of nanoseconds; one that is not over after so many pauses has
// lost its processor.
const spins = 64

// relax passes the time before attempt i+1.
func relax(i int) {
	if i < spins {
		asm.Pause()
	} else {
		runtime.Gosched()
	}
}
