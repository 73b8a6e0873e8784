//go:build (amd64 || arm64) && gc && !purego

package asm

func cycles() uint64
func cyclesOrdered() uint64
func pause()
