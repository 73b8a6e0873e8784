// Package copied does what go vet is to find: it copies an IDR.
package copied

import "github.com/quiesce-go/quiesce/idr"

func Copy(x *idr.IDR[int]) int {
	y := *x
	return y.Len()
}
