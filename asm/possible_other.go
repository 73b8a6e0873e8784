//go:build !linux

package asm

import "runtime"

func possibleCPUs() int { return runtime.NumCPU() }
