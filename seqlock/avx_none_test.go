//go:build !amd64 || !gc || purego || race

package seqlock

import "testing"

// eachCopy runs f: there is one way to copy.
func eachCopy(_ testing.TB, f func()) { f() }
