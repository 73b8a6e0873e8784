// Package copied does what go vet is to find: it copies a List and an Element.
package copied

import "github.com/quiesce-go/quiesce/rcu/list"

func Copy(x *list.List[int]) int {
	y := *x
	e := x.Front()
	z := *e
	return y.Len() + *z.Value()
}
