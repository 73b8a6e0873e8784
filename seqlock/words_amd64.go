//go:build gc && !purego && !race && !go1.28

package seqlock

import "golang.org/x/sys/cpu"

// useAVX says whether copies of 128 bytes and more may use 32-byte registers.
var useAVX = cpu.X86.HasAVX
