//go:build amd64 && !race

package rcu

// show publishes seen, by a store that has every access before it in program order before it for all
// others. It does not keep later loads behind it. Only the record's owner may call it.
//
// On amd64 that is what a plain store of an aligned word does: it is never torn, and the processor
// keeps stores behind earlier loads and stores. The compiler keeps it in program order with the
// atomic operations around it and does not drop it between them; TestCodeGeneration looks at the
// code that it made.
func (rec *record) show(seen uint64) { rec.seen = seen }

// storeRelease does the same to a word of which the caller is the only writer.
func storeRelease(p *uint64, v uint64) { *p = v }

// storeRelease32 is storeRelease for 32 bits.
func storeRelease32(p *uint32, v uint32) { *p = v }
