package linearizability

import (
	"testing"

	"github.com/anishathalye/porcupine"

	"github.com/quiesce-go/quiesce/idr"
	"github.com/quiesce-go/quiesce/rcu"
)

// What histories can be about, at most: more would be a history that the model refuses.
const (
	slots     = 8
	sequences = 40
)

type registryCall struct {
	op string
	h  idr.Handle
}

type registryResult struct {
	h   idr.Handle // of Add
	err error
	ok  bool // of Get
	n   int  // of Len
}

// A registryState is about slots, and about the objects that were in them.
type registryState struct {
	last    [slots]uint64 // sequence number of the object that came last, or 0
	live    [slots]bool   // whether that is still there
	objects [slots][sequences]objectState
}

type objectState struct {
	refs   uint8
	locked bool
}

func (s registryState) step(c registryCall, r registryResult) (bool, registryState) {
	if c.op == "Len" {
		n := 0
		for _, live := range s.live {
			if live {
				n++
			}
		}
		return r == registryResult{n: n}, s
	}
	if c.op == "Add" {
		for i := range s.live {
			if s.live[i] {
				continue
			}
			s.last[i]++
			s.live[i] = true
			return s.last[i] < sequences && r == registryResult{h: idr.Handle(s.last[i]<<32 | uint64(i))}, s
		}
		return false, s
	}
	slot, seq := c.h&(1<<32-1), uint64(c.h>>32)
	var gone error
	switch {
	case slot >= slots || seq == 0 || seq > s.last[slot]:
		gone = idr.ErrNotFound
	case seq < s.last[slot] || !s.live[slot]:
		gone = idr.ErrRemoved
	}
	var object *objectState
	if gone != idr.ErrNotFound {
		object = &s.objects[slot][seq]
	}
	switch c.op {
	case "Obtain":
		return r == registryResult{err: gone}, s
	case "Remove":
		if gone == nil {
			s.live[slot] = false
		}
		return r == registryResult{err: gone}, s
	// The other calls are only made for objects that were obtained.
	case "Lock":
		if r == (registryResult{err: idr.ErrRemoved}) {
			return gone != nil && !object.locked, s
		}
		ok := gone == nil && !object.locked && r == registryResult{}
		object.locked = true
		return ok, s
	case "Unlock":
		ok := object.locked
		object.locked = false
		return ok, s
	case "Get":
		if gone != nil && object.refs == 0 {
			return r == registryResult{}, s
		}
		object.refs++
		return r == registryResult{ok: true}, s
	case "Put":
		ok := object.refs > 0
		object.refs--
		return ok, s
	}
	panic("no such call: " + c.op)
}

var registryModel = porcupine.Model{
	Init: func() any { return registryState{} },
	Step: func(state, input, output any) (bool, any) {
		ok, after := state.(registryState).step(input.(registryCall), output.(registryResult))
		return ok, after
	},
}

func TestRegistry(t *testing.T) {
	d := rcu.New()
	t.Cleanup(func() {
		if err := d.Barrier(t.Context()); err != nil && t.Context().Err() == nil {
			t.Error(err)
		}
	})
	check(t, registryModel, func() func(c *client) {
		r := idr.NewRegistry[int](d, nil)
		return func(c *client) {
			section := d.ReadLock()
			defer section.Unlock()
			add := func() idr.Handle {
				out := c.call(registryCall{op: "Add"}, func() any {
					h, err := r.Add(nil)
					return registryResult{h: h, err: err}
				})
				return out.(registryResult).h
			}
			remove := func(h idr.Handle) {
				c.call(registryCall{"Remove", h}, func() any { return registryResult{err: r.Remove(h)} })
			}
			var objects []*idr.Object[int]
			mine := add()
			for range 10 {
				// A handle that there may be, was, or will be.
				h := idr.Handle(c.rng.IntN(4)+1)<<32 | idr.Handle(c.rng.IntN(3))
				switch op := c.rng.IntN(8); {
				case op == 0: // one out, one in, so that there are never too many
					remove(mine)
					mine = add()
				case op == 1:
					remove(h)
				case op == 2:
					c.call(registryCall{op: "Len"}, func() any { return registryResult{n: r.Len()} })
				case op < 5 || len(objects) == 0:
					c.call(registryCall{"Obtain", h}, func() any {
						o, err := r.Obtain(h)
						if err == nil {
							objects = append(objects, o)
						}
						return registryResult{err: err}
					})
				case op == 5:
					o := objects[len(objects)-1]
					if c.call(registryCall{"Lock", o.Handle()}, func() any { return registryResult{err: o.Lock()} }) == (registryResult{}) {
						c.call(registryCall{"Unlock", o.Handle()}, func() any { o.Unlock(); return registryResult{} })
					}
				default:
					o := objects[c.rng.IntN(len(objects))]
					got := c.call(registryCall{"Get", o.Handle()}, func() any { return registryResult{ok: o.Get()} })
					if c.rng.IntN(2) == 0 {
						remove(o.Handle())
					}
					if got.(registryResult).ok {
						c.call(registryCall{"Put", o.Handle()}, func() any { o.Put(); return registryResult{} })
					}
				}
			}
		}
	})
}

func TestRegistry_Refuted(t *testing.T) {
	const first, second = 1 << 32, 2 << 32
	call := func(op string, h idr.Handle, r registryResult) [2]any { return [2]any{registryCall{op, h}, r} }
	add := call("Add", 0, registryResult{h: first})
	remove := call("Remove", first, registryResult{})
	lock := call("Lock", first, registryResult{})
	notFound, removed := registryResult{err: idr.ErrNotFound}, registryResult{err: idr.ErrRemoved}
	refuted(t, registryModel,
		[][2]any{add, add},
		[][2]any{add, call("Obtain", first, notFound)},
		[][2]any{add, call("Obtain", first, removed)},
		[][2]any{add, call("Obtain", second, removed)},
		[][2]any{add, remove, call("Obtain", first, notFound)},
		[][2]any{add, remove, call("Add", 0, registryResult{h: first})},
		[][2]any{add, remove, call("Add", 0, registryResult{h: second}), call("Obtain", first, registryResult{})},
		[][2]any{add, remove, remove},
		[][2]any{add, remove, lock},
		[][2]any{add, lock, lock},
		[][2]any{add, lock, remove, call("Unlock", first, registryResult{}), lock},
		[][2]any{add, call("Get", first, registryResult{})},
		[][2]any{add, remove, call("Get", first, registryResult{ok: true})},
		[][2]any{add, call("Get", first, registryResult{ok: true}), remove, call("Put", first, registryResult{}), call("Get", first, registryResult{ok: true})},
		[][2]any{add, remove, call("Len", 0, registryResult{n: 1})},
	)
}
