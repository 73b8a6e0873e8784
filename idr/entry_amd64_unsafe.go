//go:build amd64 && gc && !race

package idr

// Why a plain load: on amd64 an atomic load is a plain one, but the compiler does not merge the
// addition into its address as it does here. That is two instructions of eleven in find, and
// where lookups are limited by how many of them fit into the processor's window, it shows: 1.38
// against 1.50 times a slice. The loads cannot tear (they are of one aligned word), nor move up
// past the atomic load of the directory that comes before them; the address of each depends on
// the load before. Nothing in the memory model says so: should a compiler split or repeat a
// load, entry_unsafe.go is right here too. TestFind_Compiled looks at what it makes of it. Race
// builds use atomic loads. Tried with Go 1.26.

import "unsafe"

// entry loads word i of the array at p. Pairs with the Stores to core.leaves and to node.slots.
func entry(p unsafe.Pointer, i uintptr) unsafe.Pointer {
	return *(*unsafe.Pointer)(unsafe.Add(p, i*word))
}
