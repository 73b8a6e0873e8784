//go:build !((amd64 || arm64) && gc && !purego && !race)

package seqlock

func load(h *head, dst any, n uintptr)    { loadGeneric(h, dst, n) }
func store(h *head, src any, n uintptr)   { storeGeneric(h, src, n) }
func publish(h *head, src any, n uintptr) { publishGeneric(h, src, n) }

func loadLatch(h *latch, dst any, n, stride uintptr)  { loadLatchGeneric(h, dst, n, stride) }
func writeLatch(h *latch, src any, n, stride uintptr) { writeLatchGeneric(h, src, n, stride) }
