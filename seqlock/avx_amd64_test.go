//go:build gc && !purego && !race && !go1.28

package seqlock

import "testing"

// eachCopy runs f once for each way to copy that this build chooses between.
func eachCopy(t testing.TB, f func()) {
	f()
	if !useAVX {
		t.Log("this machine has no AVX: the 32-byte copy is not tested")
		return
	}
	useAVX = false
	defer func() { useAVX = true }()
	f()
}
