//go:build !amd64 || !gc || race

package idr

// Why unsafe: see find_unsafe.go.

import (
	"sync/atomic"
	"unsafe"
)

// entry loads word i of the array at p. Pairs with the Stores to core.leaves and to node.slots.
func entry(p unsafe.Pointer, i uintptr) unsafe.Pointer {
	return atomic.LoadPointer((*unsafe.Pointer)(unsafe.Add(p, i*word)))
}
