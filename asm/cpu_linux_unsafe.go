//go:build linux

package asm

// This file uses unsafe to tell the kernel where to put two numbers.

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// getcpu asks the kernel. It reports false if the kernel does not say.
func getcpu() (cpu, node int, ok bool) {
	ids := [2]uint32{^uint32(0), ^uint32(0)}
	_, _, errno := unix.RawSyscall(unix.SYS_GETCPU, uintptr(unsafe.Pointer(&ids[0])), uintptr(unsafe.Pointer(&ids[1])), 0)
	if errno != 0 || ids[0] == ^uint32(0) {
		return 0, 0, false
	}
	return int(ids[0]), int(ids[1]), true
}
