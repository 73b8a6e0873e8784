package idr

// For the tests outside.

// Check panics if an invariant of x is broken.
func Check[T any](x *IDR[T]) {
	x.c.mu.Lock()
	defer x.c.mu.Unlock()
	x.c.checkLocked(x.c.checkEntries)
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

// CheckRegistry panics if an invariant of r is broken.
func CheckRegistry[T any](r *Registry[T]) {
	r.slots.c.mu.Lock()
	defer r.slots.c.mu.Unlock()
	r.slots.checkLocked()
	live, retired := 0, 0
	for first, b := range r.table.All() {
		for i := range b {
			n := first*fan + i
			o, seq := b[i].obj.Load(), b[i].seq.Load()
			switch {
			case o != nil:
				live++
				if o.isRemoved() || o.handle.Slot() != n || o.handle.sequence() != seq {
					fail("slot %d has the object of %#x, its sequence is %d", n, o.handle, seq)
				}
			case seq == maxSequence:
				retired++
			}
			if r.slots.Contains(n) != (o != nil || seq == maxSequence) {
				fail("slot %d is taken, or is not", n)
			}
		}
	}
	if live != r.live || live+retired != r.slots.n {
		fail("live is %d, not %d, and %d slots are taken", r.live, live, r.slots.n)
	}
}

// SetSequence has the next object in a slot that was used before follow one with the given
// sequence number.
func SetSequence[T any](r *Registry[T], slot int, seq uint32) {
	r.table.Find(slot / fan)[slot%fan].seq.Store(seq)
}

// SetSlots makes n the number of slots that r can use.
func SetSlots[T any](r *Registry[T], n int) { r.last = uintptr(n) - 1 }

const MaxSequence = maxSequence
