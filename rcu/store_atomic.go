//go:build !amd64 || race

package rcu

import "sync/atomic"

// show publishes seen, by a store that has every access before it in program order before it for all
// others. It is not relied on to keep later loads behind it. Only the record's owner may call it. On arm64
// it is STLR.
func (rec *record) show(seen uint64) {
	if mutant == mutantNoEdge {
		rec.seen = seen
		return
	}
	atomic.StoreUint64(&rec.seen, seen)
}

// storeRelease does the same to a word of which the caller is the only writer.
func storeRelease(p *uint64, v uint64) { atomic.StoreUint64(p, v) }

// storeRelease32 is storeRelease for 32 bits.
func storeRelease32(p *uint32, v uint32) { atomic.StoreUint32(p, v) }
