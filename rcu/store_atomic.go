//go:build !amd64 || race

package rcu

import "sync/atomic"

// storeRelease stores v to *p, which this goroutine alone writes and others load
// atomically. Every access before it in program order is before it for all others.
// It is not relied on to keep later loads behind it. On arm64 this is STLR.
func storeRelease(p *uint64, v uint64) {
	if mutant == mutantNoEdge {
		unseen(func() { atomic.StoreUint64(p, v) })
		return
	}
	atomic.StoreUint64(p, v)
}

// storeRelease32 is storeRelease for 32 bits.
func storeRelease32(p *uint32, v uint32) { atomic.StoreUint32(p, v) }
