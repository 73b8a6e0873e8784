//go:build !(gc && !purego && !go1.28)

// Package pin keeps a goroutine on its P and its thread for a moment.
package pin

// Works says whether this build can pin.
const Works = false

// Pin must not be called in this build.
func Pin() int { panic("pin: no pin in this build") }

// Unpin must not be called in this build.
func Unpin() {}
