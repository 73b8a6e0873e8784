package rcutest_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/quiesce-go/quiesce/rcu"
	"github.com/quiesce-go/quiesce/rcu/rcutest"
)

// A stack is the structure to be tortured. Its nodes are used again with their objects, which is right
// only if no reader can still be on them.
type stack struct {
	mu  sync.Mutex // of writers
	top rcu.Pointer[node]
	n   int
}

type node struct {
	o    *rcutest.Object
	next rcu.Pointer[node]
}

func (s *stack) Exchange(rng *rand.Rand, fresh *rcutest.Object) *rcutest.Object {
	if fresh.Node == nil {
		fresh.Node = &node{o: fresh}
	}
	n := fresh.Node.(*node)
	s.mu.Lock()
	defer s.mu.Unlock()
	var old *rcutest.Object
	if s.n++; s.n > 8 {
		s.n--
		o := s.top.Load()
		s.top.Store(o.next.Load())
		old = o.o
	}
	n.next.Store(s.top.Load())
	s.top.Store(n)
	return old
}

func (s *stack) Find(rng *rand.Rand, visit func(*rcutest.Object)) {
	for n := s.top.Load(); n != nil; n = n.next.Load() {
		visit(n.o)
	}
}

func Example() {
	report, err := rcutest.Run(context.Background(), rcutest.Config{
		Structure: new(stack),
		Duration:  100 * time.Millisecond,
	})
	fmt.Println(err)
	fmt.Println("sections that met an object after a grace period:", report.Ages[2])
	// Output:
	// <nil>
	// sections that met an object after a grace period: 0
}
