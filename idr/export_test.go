package idr

// For the tests outside.

var Mutant = mutant

// Check panics if an invariant of x is broken.
func Check[T any](x *IDR[T]) {
	x.c.mu.Lock()
	defer x.c.mu.Unlock()
	x.c.checkLocked()
}

// Leaves returns the numbers of leaves in the tree of x and of places in its directory.
func Leaves[T any](x *IDR[T]) (leaves, places int) {
	x.c.mu.Lock()
	defer x.c.mu.Unlock()
	return int(x.c.nleaves), len(x.c.leaves)
}
