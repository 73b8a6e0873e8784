//go:build !linux

package asm

func getcpu() (cpu, node int, ok bool) { return 0, 0, false }
