//go:build !amd64 || !gc || purego || race || go1.28

package seqlock

import "testing"

// eachCopy runs f: there is one way to copy.
func eachCopy(_ testing.TB, f func()) { f() }
