//go:build !linux

package asm

import (
	"fmt"
	"runtime"
)

func membarrierStart() error {
	return fmt.Errorf("%w: %s has no membarrier(2)", ErrUnsupported, runtime.GOOS)
}

func membarrier() error { return ErrUnsupported }

func membarrierRSEQStart() error { return ErrUnsupported }
func membarrierAbort() error     { return ErrUnsupported }
