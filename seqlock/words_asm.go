//go:build (amd64 || arm64) && gc && !purego && !race

package seqlock

// The routines of words_unsafe.go and latch_unsafe.go in assembly, where each
// call is one instruction sequence that the scheduler cannot preempt, and copies
// 16 or 32 bytes at a time. load, store and loadLatch jump to loadSlow, storeSlow
// and loadLatchSlow where the portable ones call them. What that gains is in docs/seqlock.md;
// they can go when the compiler copies atomic words as fast.
//
// noescape holds for where the jumps lead too: dst and src do not escape from
// the Go code there. h does, by its mutex, whose address the runtime keeps while
// goroutines sleep on it: then they share h, so it is on the heap.

//go:noescape
func load(h *head, dst any, n uintptr)

//go:noescape
func store(h *head, src any, n uintptr)

//go:noescape
func publish(h *head, src any, n uintptr)

//go:noescape
func loadLatch(h *latch, dst any, n, stride uintptr)

//go:noescape
func writeLatch(h *latch, src any, n, stride uintptr)
