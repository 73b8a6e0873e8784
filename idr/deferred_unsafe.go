package idr

// Why unsafe: a callback of rcu.Domain gets its Head, and goes from there to the struct that the
// Head is the first field of. A function that knew T would be a closure, and one more allocation.
//
// It relies on a struct beginning with its first field, which the language does not promise and
// unsafe.Offsetof shows. Tried with Go 1.26.

import (
	"fmt"
	"strings"
	"unsafe"

	"github.com/quiesce-go/quiesce/rcu"
)

// A deferred is embedded in what is to run after a grace period, once.
type deferred struct {
	rcu.Head // first: see runDeferred
	runner   interface{ run() }
}

const _ = -unsafe.Offsetof(deferred{}.Head) // is 0

// after has d call runner.run after a grace period. f is embedded in runner. If d cannot, because it
// is closed or was not made by rcu.New, after panics, with the name of the method that was called.
func (f *deferred) after(d *rcu.Domain, runner interface{ run() }, method string) {
	defer func() {
		if p := recover(); p != nil {
			panic("idr: " + method + ": " + strings.Replace(fmt.Sprint(p), "CallHead", "use", 1))
		}
	}()
	f.runner = runner
	d.CallHead(&f.Head, runDeferred)
}

func runDeferred(h *rcu.Head) { (*deferred)(unsafe.Pointer(h)).runner.run() }
