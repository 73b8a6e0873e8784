//go:build !((amd64 || arm64) && gc && !purego && !race && !go1.28)

// This file imports unsafe for the type of a pointer to any T.

package seqlock

import "unsafe"

func load(h *head, dst unsafe.Pointer, n uintptr, typ any)  { loadGeneric(h, dst, n, typ) }
func store(h *head, src unsafe.Pointer, n uintptr, typ any) { storeGeneric(h, src, n, typ) }
func publish(h *head, src unsafe.Pointer, n uintptr)        { publishGeneric(h, src, n) }

func loadLatch(h *latch, dst unsafe.Pointer, n, stride uintptr, typ any) {
	loadLatchGeneric(h, dst, n, stride, typ)
}
func writeLatch(h *latch, src unsafe.Pointer, n, stride uintptr) {
	writeLatchGeneric(h, src, n, stride)
}
