//go:build gc && !purego && !go1.28

package asm

// This file pulls the scheduler's pin out of the runtime with linkname. The
// runtime keeps both names for others (go.dev/issue/67401); Go 1.26 and 1.27
// tested. Between the two the goroutine keeps its P and its thread; it must not
// park, panic or run user code.

import _ "unsafe"

const canPin = true

// procPin returns the number of the P that the caller now keeps.
//
//go:linkname procPin runtime.procPin
func procPin() int

//go:linkname procUnpin runtime.procUnpin
func procUnpin()
