//go:build !amd64 || !gc || race

package idr

// Why unsafe: see find_unsafe.go.

import (
	"sync/atomic"
	"unsafe"
)

// entry loads word i of the array at p. Pairs with the Stores to core.entries and with put.
func entry(p unsafe.Pointer, i uintptr) unsafe.Pointer {
	return atomic.LoadPointer((*unsafe.Pointer)(unsafe.Add(p, i*word)))
}

// put stores v to a slot of a leaf. Pairs with entry in find and with the Loads in lookup and From.
func put(s *atomic.Pointer[obj], v *obj) { s.Store(v) }
