package idr

// For the tests outside.

var Mutant = mutant

// Check panics if an invariant of x is broken.
func Check[T any](x *IDR[T]) {
	x.c.mu.Lock()
	defer x.c.mu.Unlock()
	x.c.checkLocked(x.c.checkEntries)
}

// Leaves returns the numbers of leaves in the tree of x and of places in its directory.
func Leaves[T any](x *IDR[T]) (leaves, places int) {
	x.c.mu.Lock()
	defer x.c.mu.Unlock()
	return int(x.c.nleaves), len(x.c.leaves)
}

// CheckIDA panics if an invariant of a is broken.
func CheckIDA(a *IDA) {
	a.c.mu.Lock()
	defer a.c.mu.Unlock()
	a.checkLocked()
}

// Chunks returns the numbers of chunks and of leaves that a has.
func Chunks(a *IDA) (chunks, leaves int) {
	a.c.mu.Lock()
	defer a.c.mu.Unlock()
	for range a.chunksLocked(0) {
		chunks++
	}
	return chunks, int(a.c.nleaves)
}
