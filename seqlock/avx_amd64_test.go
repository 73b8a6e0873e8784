//go:build gc && !purego && !race

package seqlock

import "testing"

// withoutAVX turns 32-byte copies off, if off is true, until undo is called.
func withoutAVX(t testing.TB, off bool) (undo func()) {
	was := useAVX
	if !was {
		t.Log("this machine has no AVX: the 32-byte copy is not tested")
	}
	useAVX = was && !off
	return func() { useAVX = was }
}
