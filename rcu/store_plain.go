//go:build amd64 && !race

package rcu

// storeRelease stores v to *p, which this goroutine alone writes and others load
// atomically. Every access before it in program order is before it for all others.
// It does not keep later loads behind it.
//
// On amd64 that is what a plain aligned word store does: it is never torn, and the
// processor keeps stores behind earlier loads and stores. The compiler keeps it
// in program order with the atomic operations around it and does not drop it
// between them; TestCodeGeneration looks at the code it made.
func storeRelease(p *uint64, v uint64) { *p = v }

// storeRelease32 is storeRelease for 32 bits.
func storeRelease32(p *uint32, v uint32) { *p = v }
