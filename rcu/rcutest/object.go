package rcutest

import (
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/quiesce-go/quiesce/rcu"
)

// An Object is what a [Structure] holds. A torture makes Objects, frees them, and uses them again. It must not
// be copied.
type Object struct {
	head rcu.Head // first: see calledHead

	// Node is the Structure's, for what it needs to hold the Object, and is kept when the Object is freed and
	// used again. Exchange may set it before it makes the Object findable.
	Node any

	// age is 0 while the Object can be found, 1 once it was taken out, and one more with each grace period
	// since.
	age atomic.Int32

	// stamp is what readers look at. It changes when the Object is made and when it is freed, by plain
	// stores: grace periods keep them apart from readers. 0 while the Object is free.
	stamp uint64

	// The rest belongs to whoever takes the Object through its grace periods: its updater, then a callback.
	owner *updater
	plan  plan
	stage int // grace periods that have passed
}

// pipe is the most grace periods that an Object goes through before it is used again.
const pipe = 3

// A plan says how often to wait before an Object is used again, and how.
type plan struct {
	depth int
	by    [pipe]primitive
	odd   int // what its Calls do besides, if they are oddDeadlock or oddExit
}

const (
	oddDeadlock = iota // ask for what must not be waited for there
	oddExit            // end the goroutine
	odds        = 16
)

func (o *Object) String() string { return fmt.Sprintf("object %p", o) }

//go:noinline
func stampOf(o *Object) uint64 { return o.stamp }

// A pool holds free Objects.
type pool struct {
	mu     sync.Mutex
	free   []*Object
	stamps atomic.Uint64
}

// get returns an Object that nobody knows. The last one that was freed comes first, for what is used again at
// once shows most.
func (p *pool) get() *Object {
	var o *Object
	p.mu.Lock()
	if n := len(p.free); n > 0 {
		o = p.free[n-1]
		p.free = p.free[:n-1]
	}
	p.mu.Unlock()
	if o == nil {
		o = new(Object)
	}
	o.age.Store(0)
	o.stage = 0
	o.stamp = p.stamps.Add(1)
	return o
}

func (p *pool) put(o *Object) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.free = append(p.free, o)
}
