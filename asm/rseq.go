package asm

import (
	"errors"
	"fmt"
	"sync"
)

// RSEQInfo describes the restartable sequences of this process.
type RSEQInfo struct {
	// Owner is who registered the threads with the kernel: "quiesce" in a
	// process without cgo, "glibc" in one with it.
	Owner string
	// FeatureSize is the number of bytes of struct rseq that the kernel and
	// the owner keep up to date; 20 is the original set up to flags.
	FeatureSize uint32
	// Threads is the number of threads for which quiesce holds an area now,
	// the areas of threads that have ended since the last sweep included. It
	// is 0 when glibc is the owner.
	Threads int
	// Refused counts the threads that the kernel did not want to register
	// although the first one went well. They take the shared tier.
	Refused uint64
}

// ErrUnsupported is in the chain of every error of RSEQ and Membarrier that
// says that the platform, this build or the kernel has no such thing.
var ErrUnsupported = errors.ErrUnsupported

// RSEQ reports whether restartable sequences work in this process. The error
// says why not. The answer is decided by the first call of RSEQ, or by the
// first operation that wants it, and never changes afterwards: a kernel that
// says no later, to a new thread, moves that thread to the shared tier and is
// counted in Refused.
//
// The first call registers the calling thread and lets the kernel interrupt a
// sequence to see that it really is restarted; it takes about 100 microseconds.
// Later calls take a lock.
func RSEQ() (RSEQInfo, error) {
	decide()
	if rseqErr != nil {
		return RSEQInfo{}, fmt.Errorf("asm: no restartable sequences: %w", rseqErr)
	}
	return rseqInfo(), nil
}

// decide finds out, once, what this process can do. Everything below is
// written inside it and read only after it, or under atomics of its own.
var decide = sync.OnceFunc(func() {
	rseqErr = rseqStart()
	tierStart()
})

var rseqErr error
