//go:build unix

package asm

// This file uses unsafe to turn a mapping, which the kernel hands out zeroed,
// page-aligned and page by page, into per-CPU memory.

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// newChunk maps n bytes of zeroed memory that stays.
func newChunk(n int) unsafe.Pointer {
	p, err := mapChunk(n)
	if err != nil {
		panic("asm: no address space for per-CPU memory: " + err.Error())
	}
	return p
}

// mapChunk maps n bytes of zeroed memory that stays until unmapChunk.
func mapChunk(n int) (unsafe.Pointer, error) {
	m, err := unix.Mmap(-1, 0, n, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON|mapNoReserve)
	if err != nil {
		return nil, err
	}
	smallPages(m)
	return unsafe.Pointer(&m[0]), nil
}

// unmapChunk gives the n bytes at p back, which mapChunk returned.
func unmapChunk(p unsafe.Pointer, n int) { _ = unix.Munmap(unsafe.Slice((*byte)(p), n)) }
