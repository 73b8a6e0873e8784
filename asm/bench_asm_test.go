//go:build linux && !android && (amd64 || arm64) && gc && !purego && !race && !go1.28

package asm

import "testing"

// BenchmarkFloor is what an assembly call costs that does next to nothing: two
// loads that hit the cache.
func BenchmarkFloor(b *testing.B) {
	single(b, func(n int) {
		for range n {
			currentM()
		}
	})
}
