// Package list is a doubly linked list that any number of goroutines walk without
// locks while one inserts, removes and replaces.
//
// Readers walk in a section of an [rcu.Domain]. Writers take whatever lock they like,
// as long as there is one writer at a time; what they remove is freed after a grace
// period, when nobody can stand on it any more:
//
//	// Readers, often.
//	g := domain.ReadLock()
//	for s := range sessions.All() {
//		use(s)
//	}
//	g.Unlock()
//
//	// A writer, now and then.
//	mu.Lock()
//	s := sessions.Remove(e)
//	mu.Unlock()
//	rcu.Retire(domain, s, (*Session).Close)
//
// # Elements
//
// A [List] holds pointers to the caller's objects, each in an [Element] that the
// list makes: inserting gives the Element, and removing, replacing and inserting
// beside it want it back. A writer that has to look for an Element uses
// [List.Elements]. The object need not know that it is in a list, and may be in
// several.
//
// Removing an Element leaves its forward link, so a reader that stands on it goes on
// into the list. An Element is never inserted again: that would take such readers
// along. Element memory is the garbage collector's; what has to wait for a grace
// period is the object.
//
// # When to use it, and when not
//
// When an order matters that the program decides, or when all are visited. To find one
// among many use package idr, or a map. If objects are not freed, closed or recycled,
// the garbage collector does what sections do, and [List.All] needs none.
//
// # Memory ordering
//
// Inserting or replacing synchronizes before the step of a walk that yields the
// object. Removing orders nothing by itself; a grace period that is asked for after it
// ends after every section that could have found the object.
//
// # Progress and costs
//
// A step of a walk is two atomic loads, and wait-free; no walk is restarted, whatever
// writers do. Every operation of a writer takes a constant time. Inserting allocates
// the Element, four words; nothing else allocates. Nothing blocks.
//
// # Limits
//
// Readers walk forward only: a backward link cannot be kept right together with the
// forward one. An Element that was removed refers to the one that followed it, so
// whoever keeps it keeps what followed from the collector.
package list
