package linearizability

import (
	"fmt"
	"testing"

	"github.com/anishathalye/porcupine"

	"github.com/quiesce-go/quiesce/idr"
)

// idaIDs are the ids that the histories are about. They are in two chunks of 1024.
const (
	idaFirst = 1020
	idaIDs   = 8
)

// An idaCall AllocN is for n ids from id on; one for a single id is a call of AllocRange.
type idaCall struct {
	op    string
	id, n int
}

// idaModel has the taken ids as a bit each. What calls give is a string: ids, or a bool, or an error.
var idaModel = porcupine.Model{
	Init: func() any { return uint(0) },
	Step: func(state, input, output any) (bool, any) {
		s, c := state.(uint), input.(idaCall)
		i := c.id - idaFirst
		var gives any
		switch c.op {
		case "AllocN":
			var ids []int
			after := s
			for ; i < idaIDs && len(ids) < c.n; i++ {
				if after>>i&1 == 0 {
					after |= 1 << i
					ids = append(ids, idaFirst+i)
				}
			}
			if len(ids) == c.n {
				gives, s = ids, after
			} else {
				gives = idr.ErrFull
			}
		case "Free":
			if gives = error(nil); s>>i&1 == 0 {
				gives = idr.ErrNotFound
			}
			s &^= 1 << i
		case "Contains":
			gives = s>>i&1 != 0
		case "Len":
			n := 0
			for b := s; b != 0; b &= b - 1 {
				n++
			}
			gives = n
		}
		return fmt.Sprint(gives) == output.(string), s
	},
}

// AllocN takes all its ids at once for those who take and free, which Contains does not see. So
// Contains is in histories with AllocRange alone.
func TestIDA(t *testing.T) {
	t.Run("one by one", func(t *testing.T) { testIDA(t, "AllocN", "Free", "Contains", "Contains", "Len") })
	t.Run("batches", func(t *testing.T) { testIDA(t, "AllocN", "AllocN", "Free", "Free", "Free", "Len") })
}

func testIDA(t *testing.T, ops ...string) {
	check(t, idaModel, func() func(c *client) {
		a := new(idr.IDA)
		return func(c *client) {
			for range 12 {
				in := idaCall{op: pick(c.rng, ops...), id: idaFirst + c.rng.IntN(idaIDs), n: 1}
				if ops[1] == "AllocN" {
					in.n += c.rng.IntN(4)
				}
				c.call(in, func() any {
					last := idaFirst + idaIDs - 1
					switch in.op {
					case "AllocN":
						var ids []int
						var err error
						if in.n == 1 {
							ids = make([]int, 1)
							ids[0], err = a.AllocRange(in.id, last)
						} else {
							ids, err = a.AllocN(in.n, in.id, last)
						}
						if err != nil {
							return fmt.Sprint(err)
						}
						return fmt.Sprint(ids)
					case "Free":
						return fmt.Sprint(a.Free(in.id))
					case "Contains":
						return fmt.Sprint(a.Contains(in.id))
					}
					return fmt.Sprint(a.Len())
				})
			}
		}
	})
}

func TestIDA_Refuted(t *testing.T) {
	take := [2]any{idaCall{"AllocN", 1021, 2}, "[1021 1022]"}
	release := [2]any{idaCall{op: "Free", id: 1022}, "<nil>"}
	refuted(t, idaModel,
		[][2]any{take, take},
		[][2]any{take, {idaCall{op: "Contains", id: 1022}, "false"}},
		[][2]any{take, release, release},
		[][2]any{take, release, {idaCall{"AllocN", 1021, 1}, "[1023]"}},
		[][2]any{take, release, {idaCall{op: "Len"}, "2"}},
		[][2]any{take, {idaCall{"AllocN", 1020, 7}, "[1020 1023]"}},
		[][2]any{{idaCall{"AllocN", 1026, 3}, fmt.Sprint(idr.ErrFull)}, {idaCall{op: "Contains", id: 1026}, "true"}},
	)
}
