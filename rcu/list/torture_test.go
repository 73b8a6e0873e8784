package list_test

import (
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/quiesce-go/quiesce/rcu/list"
	"github.com/quiesce-go/quiesce/rcu/rcutest"
)

// tortured is a List whose Objects rcutest retires in all ways there are.
type tortured struct {
	mu sync.Mutex
	l  list.List[rcutest.Object]
	in []*list.Element[rcutest.Object]
}

func (s *tortured) Exchange(rng *rand.Rand, fresh *rcutest.Object) *rcutest.Object {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.in) < 8 {
		s.in = append(s.in, s.l.PushFront(fresh))
		return nil
	}
	i := rng.IntN(len(s.in))
	e := s.in[i]
	switch rng.IntN(4) {
	case 0:
		return s.l.Replace(e, fresh)
	case 1:
		s.in[i] = s.l.InsertBefore(fresh, e)
	case 2:
		s.in[i] = s.l.InsertAfter(fresh, e)
	default:
		s.in[i] = s.l.PushBack(fresh)
	}
	return s.l.Remove(e)
}

func (s *tortured) Find(rng *rand.Rand, visit func(*rcutest.Object)) {
	for o := range s.l.All() {
		visit(o)
		if rng.IntN(8) == 0 {
			break
		}
	}
}

// Twin: list-keeplink.
func TestTorture(t *testing.T) {
	long := 500 * time.Millisecond
	if testing.Short() {
		long = 100 * time.Millisecond
	}
	rcutest.Test(t, rcutest.Config{Structure: new(tortured), Duration: long})
}
