package list

// Mutant is the deliberate fault of this build.
var Mutant = mutant

// Check panics if l is broken, also without the tag invariants.
func (l *List[T]) Check() { l.verify() }
