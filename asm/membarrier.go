package asm

import (
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
)

var membarrierOnce = sync.OnceValue(func() error {
	err := membarrierStart()
	canFence.Store(err == nil)
	return err
})

// canFence says that Membarrier returned nil.
var canFence atomic.Bool

// Membarrier reports whether the kernel runs a barrier on the other threads of
// this process when asked to: nil when membarrier(2)'s private expedited
// command is there and the process is registered for it. The answer never
// changes. A nil answer is what Fence needs; without it readers have to fence
// for themselves. The first call makes three system calls.
func Membarrier() error {
	if err := membarrierOnce(); err != nil {
		return fmt.Errorf("asm: no asymmetric fence: %w", err)
	}
	return nil
}

// Fence is the updater's half of an asymmetric fence, whose other half is
// nothing at all: between its begin and its end every other thread of the
// process goes through a full memory barrier. So of a thread that makes a plain
// store and then a load, and a caller of Fence that stores before it and loads
// after it, at least one sees the other's store.
//
// It costs 1 to 2 microseconds and interrupts the CPUs that run this process.
// It does not allocate. It must only be relied on where Membarrier returned
// nil. If the kernel begins to refuse later (a sandbox that was entered after
// the first call), Fence stops the world of the Go runtime for a moment
// instead: every thread that runs Go code passes a barrier on the way.
func Fence() {
	if membarrier() != nil {
		StopTheWorld()
	}
}

// StopTheWorld has every thread that runs Go code reach a safe point, which is
// behind a full barrier, never inside assembly, and never while a goroutine is
// pinned to its P. It costs some ten microseconds, and more on many CPUs.
func StopTheWorld() {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
}

var membarrierRSEQOnce = sync.OnceValue(membarrierRSEQStart)

// fenceSequences is a Fence after which every restartable sequence that began
// before has been committed or aborted. It must only be relied on where
// membarrierRSEQOnce and membarrierOnce returned nil.
func fenceSequences() {
	if membarrierAbort() != nil || membarrier() != nil {
		StopTheWorld()
	}
}
