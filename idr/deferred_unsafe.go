package idr

// Why unsafe: a callback of rcu.Domain gets its Head, and goes from there to the struct that the
// Head is the first field of. A function that knew T would be a closure, and one more allocation.
//
// It relies on a struct beginning with its first field, which the language does not promise and
// unsafe.Offsetof shows. Tried with Go 1.26.

import (
	"unsafe"

	"github.com/quiesce-go/quiesce/rcu"
)

// A deferred is embedded in what is to run after a grace period, once.
type deferred struct {
	rcu.Head // first: see runDeferred
	runner   interface{ run() }
}

const _ = -unsafe.Offsetof(deferred{}.Head) // is 0

// after has d call runner.run after a grace period. f is embedded in runner.
func (f *deferred) after(d *rcu.Domain, runner interface{ run() }) {
	f.runner = runner
	d.CallHead(&f.Head, runDeferred)
}

func runDeferred(h *rcu.Head) { (*deferred)(unsafe.Pointer(h)).runner.run() }
