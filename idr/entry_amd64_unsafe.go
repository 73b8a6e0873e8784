//go:build amd64 && gc && !race

package idr

// Why plain loads and stores: on amd64 an atomic load is a plain one, but the compiler does not
// merge the addition into its address as it does here. That is two instructions of eleven in find,
// and where lookups are limited by how many of them fit into the processor's window, it shows:
// 1.39 against 1.55 times a slice. An atomic store is an exchange behind a call; a plain one needs
// neither, and takes a quarter off Alloc and Remove.
//
// The loads and stores are of one aligned word, so they cannot tear. The loads do not move up past
// the atomic load of the directory that comes before them, and the address of each depends on the
// load before. The processor keeps a store behind all earlier loads and stores, and the compiler
// keeps it before the unlocking of the mutex, which makes it visible. Nothing in the memory model
// says so: should a compiler split or repeat them, entry_unsafe.go is right here too.
// TestCompiled looks at what this one makes. Race builds use atomic operations. Tried with Go 1.26.

import (
	"sync/atomic"
	"unsafe"
)

// entry loads word i of the array at p. Pairs with the Stores to core.entries and with put.
func entry(p unsafe.Pointer, i uintptr) unsafe.Pointer {
	return *(*unsafe.Pointer)(unsafe.Add(p, i*word))
}

// put stores v to a slot of a leaf. Pairs with entry in find and with the Loads in lookup and From.
func put(s *atomic.Pointer[obj], v *obj) { *(**obj)(unsafe.Pointer(s)) = v }
