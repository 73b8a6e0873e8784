//go:build !unix

package asm

// This file uses unsafe to turn a slice of the Go heap into per-CPU memory.

import "unsafe"

var chunks [][]uint64 // keeps them

// newChunk returns n bytes of zeroed memory that stays. The caller holds the
// pool's lock.
func newChunk(n int) unsafe.Pointer {
	chunks = append(chunks, make([]uint64, n/8))
	return unsafe.Pointer(&chunks[len(chunks)-1][0])
}

// mapChunk returns n bytes of zeroed memory that stays as long as it is reachable.
func mapChunk(n int) (unsafe.Pointer, error) {
	return unsafe.Pointer(unsafe.SliceData(make([]uint64, n/8))), nil
}

// unmapChunk does nothing: the garbage collector knows the memory.
func unmapChunk(unsafe.Pointer, int) {}
