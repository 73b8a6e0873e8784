//go:build gc && !purego && !go1.28

// Package pin keeps a goroutine on its P and its thread for a moment.
package pin

// This file pulls the scheduler's pin out of the runtime with linkname. The
// runtime keeps both names for others (go.dev/issue/67401); Go 1.26 and 1.27
// tested. Between the two the caller must not park, panic or run user code: the
// process would die.

import _ "unsafe"

// Works says whether this build can pin.
const Works = true

// Pin returns the number of the P that the caller keeps until Unpin.
//
//go:linkname Pin runtime.procPin
func Pin() int

// Unpin ends what Pin began.
//
//go:linkname Unpin runtime.procUnpin
func Unpin()
