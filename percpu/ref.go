package percpu

import (
	"sync"
	"sync/atomic"

	"github.com/quiesce-go/quiesce/asm"
	"github.com/quiesce-go/quiesce/internal/gate"
)

// A Ref counts references to something that has an owner: while it is live, Get
// and Put count by CPU and nobody asks for the total. When the owner lets go,
// Kill moves to one shared count, and the Put that drops the last reference
// calls release.
//
// Refs are made by NewRef, may be used by any number of goroutines and must not
// be copied. It is the kernel's percpu_ref.
//
// What happens before a Put happens before the call of release. Get, TryGet,
// TryGetLive and Put take 2 to 10 ns, do not allocate and do not block, but for
// release, which runs in the goroutine whose Put or Kill was the last. Kill
// takes a microsecond or two. Without restartable sequences or the fence that
// aborts them, all references are in the shared count: [asm.Gates] tells.
type Ref struct {
	gated
	release func() // nil only in a zero Ref

	// count is the number of references that are not in the gate's words, plus
	// bias while the gate is open and so cannot be trusted to be 0.
	count atomic.Int64
	dying atomic.Bool // from Kill to Reinit

	mu     sync.Mutex // serializes Kill and Reinit
	folded int64      // how many of the references in the words were moved to count; under mu
}

const refBias = 1 << 62

// NewRef returns a live Ref with one reference, the initial one, which Kill
// drops. release is called when the last reference is gone, once for each Kill; if it
// is nil, nothing is.
func NewRef(release func()) *Ref {
	if release == nil {
		release = func() {}
	}
	r := &Ref{release: release}
	if asm.Gates() {
		r.gate.Make(gatedWords)
	}
	r.start()
	return r
}

// start gives r its initial reference and opens the gate, if there is one.
func (r *Ref) start() {
	r.dying.Store(false)
	if r.gate.Made() {
		r.count.Store(refBias + 1)
		r.gate.Open()
	} else {
		r.count.Store(1)
	}
}

// Get takes a reference. The caller knows that there is one already. It panics
// if there is none.
func (r *Ref) Get() { r.gate.Add(gate.Owner{}, entries, byRef) }

// Put drops a reference. If it was the last it calls release. It panics if there
// was none, which a live Ref does not notice before Kill.
func (r *Ref) Put() { r.gate.Add(gate.Owner{}, exits, byRef) }

// slow is Get and Put when the gate is shut, or the thread cannot run sequences,
// or there is no gate.
func (r *Ref) slow(i int) {
	switch {
	case r.release == nil:
		panic("percpu: use of a Ref that NewRef has not made")
	case r.gate.TryAdd(i, byRef):
	case i == exits:
		r.put(-1, "Put")
	case r.count.Add(1) <= 1:
		r.count.Add(-1)
		panic("percpu: Get of a Ref that has reached zero")
	}
}

// put adds delta to the shared count and calls release if that was the end.
func (r *Ref) put(delta int64, what string) {
	switch n := r.count.Add(delta); {
	case n < 0:
		r.count.Add(-n) // stays at 0
		panic("percpu: more Puts than references: found by " + what + " of a Ref")
	case n == 0:
		r.release()
	}
}

// TryGet takes a reference if there still is one, and reports whether it did.
func (r *Ref) TryGet() bool {
	if r.gate.TryAdd(entries, byRef) {
		return true
	}
	for {
		n := r.count.Load()
		if n == 0 {
			return false
		}
		if r.count.CompareAndSwap(n, n+1) {
			return true
		}
	}
}

// TryGetLive takes a reference if r was not killed, and reports whether it did.
func (r *Ref) TryGetLive() bool {
	if r.gate.TryAdd(entries, byRef) {
		return true
	}
	return !r.dying.Load() && r.TryGet()
}

// Kill drops the initial reference and counts in one place from now on, so that
// the last Put is noticed. It panics if r is dying already.
func (r *Ref) Kill() {
	if r.release == nil {
		panic("percpu: Kill of a Ref that NewRef has not made")
	}
	r.mu.Lock()
	if r.dying.Swap(true) {
		r.mu.Unlock()
		panic("percpu: Kill of a Ref that was killed already")
	}
	drop := int64(-1)
	if r.gate.Made() {
		r.gate.Shut()
		// Nobody touches the words now: Get and Put go to count, which bias
		// keeps from 0 until what the words hold is in it.
		n := r.inside(byRef)
		drop += n - r.folded - refBias
		r.folded = n
	}
	r.mu.Unlock()
	r.put(drop, "Kill")
}

// Dying reports whether r was killed, and not made live again since.
func (r *Ref) Dying() bool { return r.dying.Load() }

// Zero reports whether the last reference is gone.
func (r *Ref) Zero() bool { return r.count.Load() == 0 }

// Reinit makes r live again, with the initial reference. It panics if there
// still are references.
func (r *Ref) Reinit() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.Zero() {
		panic("percpu: Reinit of a Ref that has references")
	}
	r.start()
}
