package list

import "fmt"

// check is called by writers after each change, and looks at l in builds with the tag invariants.
func (l *List[T]) check() {
	if invariants {
		l.verify()
	}
}

// verify panics if l's links or its count are wrong. It is for writers.
func (l *List[T]) verify() {
	n, prev := int64(0), (*Element[T])(nil)
	for e := l.first.Load(); e != nil; e = e.next.Load() {
		if e.prev != prev || e.list != l || e.v.Load() == nil {
			panic(fmt.Sprintf("list: broken invariant: element %d: prev %p after %p, list %p in %p", n, e.prev, prev, e.list, l))
		}
		n, prev = n+1, e
	}
	if l.last != prev || l.n.Load() != n {
		panic(fmt.Sprintf("list: broken invariant: %d elements, counted %d; last %p, not %p", n, l.n.Load(), prev, l.last))
	}
}
