//go:build !amd64 || !gc || purego || race

package seqlock

import "testing"

// withoutAVX does nothing where there is no AVX in use.
func withoutAVX(testing.TB, bool) (undo func()) { return func() {} }
