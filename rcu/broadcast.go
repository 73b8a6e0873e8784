package rcu

import "sync/atomic"

// A broadcast wakes all goroutines that wait for something to change. The channel exists
// only while somebody waits.
type broadcast struct{ ch atomic.Pointer[chan struct{}] }

// wait returns a channel that is closed by the next wake. The caller looks once more at
// what it waits for before it blocks: either it sees the change whose wake came before, or
// the channel will be closed. Pairs with wake: both are read-modify-writes of one word, or
// a load of a channel that the next wake is going to find.
func (b *broadcast) wait() <-chan struct{} {
	for {
		if p := b.ch.Load(); p != nil {
			return *p
		}
		c := make(chan struct{})
		if b.ch.CompareAndSwap(nil, &c) {
			return c
		}
	}
}

// wake is called after a change. Pairs with wait.
func (b *broadcast) wake() {
	if p := b.ch.Swap(nil); p != nil {
		close(*p)
	}
}

// waiting reports whether somebody may be waiting.
func (b *broadcast) waiting() bool { return b.ch.Load() != nil }
