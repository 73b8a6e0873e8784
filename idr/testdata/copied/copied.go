// Package copied does what go vet is to find: it copies what must not be.
package copied

import "github.com/quiesce-go/quiesce/idr"

func Copy(x *idr.IDR[int], a *idr.IDA, r *idr.Registry[int], o *idr.Object[int]) int {
	y := *x
	b := *a
	s := *r
	p := *o
	return y.Len() + b.Len() + s.Len() + *p.Value()
}
