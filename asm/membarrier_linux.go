package asm

import (
	"fmt"

	"golang.org/x/sys/unix"
)

const (
	membarrierQuery                    = 0
	membarrierPrivateExpedited         = 1 << 3
	membarrierRegisterPrivateExpedited = 1 << 4
	membarrierRSEQ                     = 1 << 7
	membarrierRegisterRSEQ             = 1 << 8
)

// membarrierCall is a variable for the tests.
var membarrierCall = func(cmd uintptr) (uintptr, unix.Errno) {
	r, _, errno := unix.RawSyscall(unix.SYS_MEMBARRIER, cmd, 0, 0)
	return r, errno
}

func membarrierStart() error {
	const need = membarrierPrivateExpedited | membarrierRegisterPrivateExpedited
	has, errno := membarrierCall(membarrierQuery)
	if errno != 0 {
		return fmt.Errorf("%w: membarrier(2): %w", ErrUnsupported, errno)
	}
	if has&need != need {
		return fmt.Errorf("%w: membarrier(2) has no private expedited command", ErrUnsupported)
	}
	if _, errno := membarrierCall(membarrierRegisterPrivateExpedited); errno != 0 {
		return fmt.Errorf("membarrier(2): registration: %w", errno)
	}
	return membarrier()
}

func membarrier() error {
	if _, errno := membarrierCall(membarrierPrivateExpedited); errno != 0 {
		return fmt.Errorf("membarrier(2): %w", errno)
	}
	return nil
}

func membarrierRSEQStart() error {
	if _, errno := membarrierCall(membarrierRegisterRSEQ); errno != 0 {
		return fmt.Errorf("%w: membarrier(2) for restartable sequences: %w", ErrUnsupported, errno)
	}
	return membarrierAbort()
}

func membarrierAbort() error {
	if _, errno := membarrierCall(membarrierRSEQ); errno != 0 {
		return fmt.Errorf("membarrier(2): %w", errno)
	}
	return nil
}
