//go:build cgo && quiesce_cgo

package asm

// With the tag quiesce_cgo the test binary is a cgo program, whose threads
// libc starts.
import _ "runtime/cgo"
