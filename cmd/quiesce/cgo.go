//go:build cgo && quiesce_cgo

package main

// With the tag quiesce_cgo the command is a cgo program, whose threads libc
// starts, so that info shows what such a program gets.
import _ "runtime/cgo"
