//go:build (amd64 || arm64) && gc && !purego && !race && !go1.28

package seqlock

// assembly says that the scheduler cannot stop a write in the middle: see words_asm_unsafe.go.
const assembly = true
