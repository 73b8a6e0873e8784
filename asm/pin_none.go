//go:build !(gc && !purego && !go1.28)

package asm

const canPin = false

func procPin() int { panic("asm: no pin in this build") }
func procUnpin()   {}
