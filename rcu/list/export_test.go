package list

// Check panics if l is broken, also without the tag invariants.
func (l *List[T]) Check() { l.verify() }
