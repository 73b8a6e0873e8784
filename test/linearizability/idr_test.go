package linearizability

import (
	"testing"

	"github.com/anishathalye/porcupine"

	"github.com/quiesce-go/quiesce/idr"
)

// idrIDs are the ids that the histories are about. They are in two leaves.
const (
	idrFirst = 60
	idrIDs   = 6
)

// Values are numbers: 0 is nil, and in the model -1 is that the id is free.
const free = -1

type idrCall struct {
	op         string
	id         int
	old, value int
}

type idrResult struct {
	id, value int
	ok        bool
}

type idrState struct {
	values [idrIDs]int
	cursor int
}

func (s idrState) len() (n int) {
	for _, v := range s.values {
		if v != free {
			n++
		}
	}
	return n
}

// alloc is the allocation of the first free id in the order of the numbers from i to j.
func (s idrState) alloc(v int, i, j int) (idrState, idrResult, bool) {
	for ; i < j; i++ {
		if s.values[i] == free {
			s.values[i] = v
			return s, idrResult{id: idrFirst + i, ok: true}, true
		}
	}
	return s, idrResult{}, false
}

// step returns the state after a call, and what the call gives.
func (s idrState) step(c idrCall) (idrState, idrResult) {
	i := c.id - idrFirst
	switch c.op {
	case "AllocRange":
		s, r, _ := s.alloc(c.value, i, idrIDs)
		return s, r
	case "AllocCyclic":
		from := max(0, min(s.cursor, idrIDs))
		after, r, ok := s.alloc(c.value, from, idrIDs)
		if !ok {
			after, r, ok = s.alloc(c.value, 0, from)
		}
		if ok {
			after.cursor = r.id + 1 - idrFirst
		}
		return after, r
	case "Insert":
		if s.values[i] != free {
			return s, idrResult{}
		}
		s.values[i] = c.value
		return s, idrResult{ok: true}
	case "Find":
		return s, idrResult{value: max(0, s.values[i])}
	case "Replace":
		old := s.values[i]
		if old == free {
			return s, idrResult{}
		}
		s.values[i] = c.value
		return s, idrResult{value: old, ok: true}
	case "CompareAndSwap":
		if s.values[i] != c.old {
			return s, idrResult{}
		}
		s.values[i] = c.value
		return s, idrResult{ok: true}
	case "Remove":
		old := s.values[i]
		s.values[i] = free
		return s, idrResult{value: max(0, old)}
	case "Len":
		return s, idrResult{value: s.len()}
	}
	panic("no such call: " + c.op)
}

var idrModel = porcupine.Model{
	Init: func() any {
		s := idrState{}
		for i := range s.values {
			s.values[i] = free
		}
		return s
	},
	Step: func(state, input, output any) (bool, any) {
		after, r := state.(idrState).step(input.(idrCall))
		return r == output.(idrResult), after
	},
}

func TestIDR(t *testing.T) {
	// Len is exact, so it cannot be in a history beside ids that are not.
	t.Run("alone", func(t *testing.T) { testIDR(t, "Len", false) })
	// Leaves and inner nodes come and go, and the directory grows, which lookups are not to see.
	t.Run("neighbours", func(t *testing.T) { testIDR(t, "Find", true) })
}

func testIDR(t *testing.T, other string, neighbours bool) {
	var values [5]int
	value := func(i int) *int {
		if i == 0 {
			return nil
		}
		return &values[i]
	}
	number := func(v *int) int {
		for i := range values {
			if v == value(i) {
				return i
			}
		}
		return -2 // that of a neighbour
	}
	check(t, idrModel, func() func(c *client) {
		x := new(idr.IDR[int])
		return func(c *client) {
			for range 12 {
				if neighbours {
					far := (1 + c.rng.IntN(64)) << (9 + c.rng.IntN(2)*10)
					x.Insert(far, &values[0])
					x.Remove(far)
				}
				in := idrCall{
					op: pick(c.rng, "AllocRange", "AllocCyclic", "Insert", "Find", "Find", "Replace", "CompareAndSwap", "CompareAndSwap", "Remove", "Remove", other),
					id: idrFirst + c.rng.IntN(idrIDs), old: c.rng.IntN(len(values)), value: c.rng.IntN(len(values)),
				}
				c.call(in, func() any {
					var r idrResult
					var err error
					switch last := idrFirst + idrIDs - 1; in.op {
					case "AllocRange":
						r.id, err = x.AllocRange(value(in.value), in.id, last)
						r.ok = err == nil
					case "AllocCyclic":
						r.id, err = x.AllocCyclic(value(in.value), idrFirst, last)
						r.ok = err == nil
					case "Insert":
						r.ok = x.Insert(in.id, value(in.value)) == nil
					case "Find":
						r.value = number(x.Find(in.id))
					case "Replace":
						var old *int
						old, err = x.Replace(in.id, value(in.value))
						r.value, r.ok = number(old), err == nil
					case "CompareAndSwap":
						r.ok = x.CompareAndSwap(in.id, value(in.old), value(in.value))
					case "Remove":
						r.value = number(x.Remove(in.id))
					case "Len":
						r.value = x.Len()
					}
					return r
				})
			}
		}
	})
}

func TestIDR_Refuted(t *testing.T) {
	insert := [2]any{idrCall{op: "Insert", id: 61, value: 1}, idrResult{ok: true}}
	swap := [2]any{idrCall{op: "CompareAndSwap", id: 61, old: 1, value: 2}, idrResult{ok: true}}
	remove := [2]any{idrCall{op: "Remove", id: 61}, idrResult{value: 1}}
	refuted(t, idrModel,
		[][2]any{insert, {idrCall{op: "Find", id: 61}, idrResult{}}},
		[][2]any{insert, insert},
		[][2]any{insert, swap, remove},
		[][2]any{insert, remove, remove},
		[][2]any{insert, remove, swap},
		[][2]any{insert, {idrCall{op: "Replace", id: 61, value: 3}, idrResult{value: 1, ok: true}}, remove},
		[][2]any{insert, {idrCall{op: "AllocRange", id: 61}, idrResult{id: 61, ok: true}}},
		[][2]any{insert, {idrCall{op: "AllocRange", id: 60}, idrResult{id: 62, ok: true}}},
		[][2]any{
			{idrCall{op: "AllocCyclic", value: 1}, idrResult{id: 60, ok: true}},
			{idrCall{op: "Remove", id: 60}, idrResult{value: 1}},
			{idrCall{op: "AllocCyclic", value: 1}, idrResult{id: 60, ok: true}},
		},
		[][2]any{insert, {idrCall{op: "Len"}, idrResult{}}},
	)
}
