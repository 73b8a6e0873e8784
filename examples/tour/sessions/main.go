// Command sessions has a table of sessions that are found by a number without a lock, and recycled: a
// request allocates nothing, and a session is not used again before the last request that found it is
// over.
package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/quiesce-go/quiesce/idr"
	"github.com/quiesce-go/quiesce/percpu"
	"github.com/quiesce-go/quiesce/rcu"
)

type session struct {
	user string
	hits int // under the lock of its object
}

type server struct {
	domain *rcu.Domain
	free   percpu.Pool[*session]
	table  *idr.Registry[session]
}

func newServer() *server {
	s := &server{domain: rcu.New()}
	s.free.New = func() *session { return new(session) }
	// Called after the last reference and a grace period: nobody has the session any more.
	s.table = idr.NewRegistry(s.domain, func(v *session) {
		*v = session{}
		s.free.Put(v)
	})
	return s
}

func (s *server) login(user string) (idr.Handle, error) {
	v := s.free.Get()
	v.user = user
	return s.table.Add(v)
}

// request counts a hit of a session, for a goroutine with the Reader r. It allocates nothing.
func (s *server) request(r *rcu.Reader, h idr.Handle) (hits int, err error) {
	r.Lock()
	defer r.Unlock()
	o, err := s.table.Obtain(h)
	if err != nil {
		return 0, err
	}
	if err := o.Lock(); err != nil {
		return 0, err // it was removed meanwhile
	}
	defer o.Unlock()
	o.Value().hits++
	return o.Value().hits, nil
}

func main() {
	s := newServer()
	r := s.domain.NewReader()
	defer r.Close()
	alice, _ := s.login("alice")
	s.request(r, alice)
	hits, err := s.request(r, alice)
	fmt.Println("alice:", hits, err)

	s.table.Remove(alice)
	s.domain.Barrier(context.Background())
	fmt.Println("to be used again:", s.free.Len())

	bob, _ := s.login("bob") // the same memory and the same slot, but another handle
	hits, err = s.request(r, bob)
	fmt.Println("bob:", hits, err)
	_, err = s.request(r, alice)
	fmt.Println("alice is gone:", errors.Is(err, idr.ErrRemoved))
}
