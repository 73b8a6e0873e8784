package idr_test

import (
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/quiesce-go/quiesce/idr"
	"github.com/quiesce-go/quiesce/rcu"
)

// A model is what an IDR is to be: a map.
type model struct {
	ids    map[int]*entry
	cursor uint
}

type entry struct {
	v    *int
	held bool
}

func (m *model) free(lo, hi int) (int, error) {
	if lo < 0 || hi < lo {
		return 0, idr.ErrRange
	}
	for id := uint(lo); id <= uint(hi); id++ {
		if m.ids[int(id)] == nil {
			return int(id), nil
		}
	}
	return 0, idr.ErrFull
}

func (m *model) alloc(v *int, lo, hi int) (int, error) {
	id, err := m.free(lo, hi)
	if err == nil {
		m.ids[id] = &entry{v: v}
	}
	return id, err
}

func (m *model) allocCyclic(v *int, lo, hi int) (int, error) {
	if lo < 0 || hi < lo {
		return 0, idr.ErrRange
	}
	from := lo
	if m.cursor >= uint(lo) && m.cursor <= uint(hi) {
		from = int(m.cursor)
	}
	id, err := m.alloc(v, from, hi)
	if err != nil {
		id, err = m.alloc(v, lo, hi)
	}
	if err == nil {
		m.cursor = uint(id) + 1
	}
	return id, err
}

func (m *model) insert(id int, v *int) error {
	switch {
	case id < 0:
		return idr.ErrRange
	case m.ids[id] != nil:
		return idr.ErrExists
	}
	m.ids[id] = &entry{v: v}
	return nil
}

// entry returns the entry of id, unless it is held.
func (m *model) entry(id int) *entry {
	if e := m.ids[id]; e != nil && !e.held {
		return e
	}
	return nil
}

func (m *model) next(id int) (int, *int, bool) {
	best, found := 0, (*int)(nil)
	for at, e := range m.ids {
		if at >= id && e.v != nil && (found == nil || at < best) {
			best, found = at, e.v
		}
	}
	return best, found, found != nil
}

// A tape is where a test gets its decisions from: random ones, or a fuzzer's.
type tape struct {
	data []byte
	rng  *rand.Rand
}

func (p *tape) more() bool { return p.rng != nil || len(p.data) > 0 }

func (p *tape) int(n int) int {
	if p.rng != nil {
		return p.rng.IntN(n)
	}
	var b [4]byte
	p.data = p.data[copy(b[:2], p.data):]
	return int(binary.LittleEndian.Uint32(b[:])) % n
}

// id is an id, mostly one that others are near.
func (p *tape) id() int {
	edges := [...]int{0, 60, 128, 4090, 1 << 12, 1 << 18, 1 << 24, 1 << 30, math.MaxInt - 70, math.MaxInt - 3, -3}
	id := edges[p.int(len(edges))]
	switch p.int(4) {
	case 0:
		return id
	case 1:
		return id + p.int(4)
	case 2:
		return p.int(2000)
	}
	return id + p.int(max(1, min(130, math.MaxInt-max(id, 0))))
}

func (p *tape) span() (lo, hi int) {
	lo = p.id()
	switch p.int(4) {
	case 0:
		return lo, math.MaxInt
	case 1:
		return lo, p.id()
	}
	return lo, lo + p.int(max(1, min(70, math.MaxInt-max(lo, 0))))
}

// play does n calls, or as many as the tape has, and compares with the model. It returns the calls
// in words, for an error.
func play(p *tape, n int) (calls []string, err error) {
	var x idr.IDR[int]
	m := &model{ids: make(map[int]*entry)}
	d := rcu.New()
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("panic: %v", r)
		}
	}()
	values := make([]int, 8)
	value := func() *int {
		if i := p.int(len(values) + 1); i < len(values) {
			return &values[i]
		}
		return nil
	}
	retired := make(map[int]*int)
	for i := 0; i < n && p.more(); i++ {
		var got, want []any
		call := func(format string, args ...any) { calls = append(calls, fmt.Sprintf(format, args...)) }
		switch p.int(16) {
		case 0, 1:
			v := value()
			call("Alloc(%p)", v)
			id, err := x.Alloc(v)
			got = []any{id, err}
			id, err = m.alloc(v, 0, math.MaxInt)
			want = []any{id, err}
		case 2, 3:
			v := value()
			lo, hi := p.span()
			call("AllocRange(%p, %d, %d)", v, lo, hi)
			id, err := x.AllocRange(v, lo, hi)
			got = []any{id, err}
			id, err = m.alloc(v, lo, hi)
			want = []any{id, err}
		case 4:
			v := value()
			lo, hi := p.span()
			call("AllocCyclic(%p, %d, %d)", v, lo, hi)
			id, err := x.AllocCyclic(v, lo, hi)
			got = []any{id, err}
			id, err = m.allocCyclic(v, lo, hi)
			want = []any{id, err}
		case 5:
			v := value()
			lo, hi := p.span()
			call("AllocFunc(%d, %d) of %p", lo, hi, v)
			id, err := x.AllocFunc(lo, hi, func(id int) *int {
				call("Remove(%d) in it", id)
				if x.Remove(id) != nil || x.Find(id) != nil {
					panic("an entry before its time")
				}
				return v
			})
			got = []any{id, err}
			id, err = m.free(lo, hi)
			if err == nil && v == nil {
				id, err = 0, idr.ErrAborted
			} else if err == nil {
				m.ids[id] = &entry{v: v}
			}
			want = []any{id, err}
		case 6, 7:
			id, v := p.id(), value()
			call("Insert(%d, %p)", id, v)
			got = []any{x.Insert(id, v)}
			want = []any{m.insert(id, v)}
		case 8:
			id, v := p.id(), value()
			call("Replace(%d, %p)", id, v)
			old, err := x.Replace(id, v)
			got = []any{old, err}
			if e := m.entry(id); e != nil {
				want = []any{e.v, nil}
				e.v = v
			} else {
				want = []any{(*int)(nil), idr.ErrNotFound}
			}
		case 9:
			id, old, v := p.id(), value(), value()
			call("CompareAndSwap(%d, %p, %p)", id, old, v)
			got = []any{x.CompareAndSwap(id, old, v)}
			e := m.entry(id)
			want = []any{e != nil && e.v == old}
			if e != nil && e.v == old {
				e.v = v
			}
		case 10, 11, 12:
			id := p.id()
			call("Remove(%d)", id)
			got = []any{x.Remove(id)}
			want = []any{(*int)(nil)}
			if e := m.entry(id); e != nil {
				want = []any{e.v}
				delete(m.ids, id)
			}
		case 13:
			id := p.id()
			call("RemoveRetire(%d)", id)
			got = []any{x.RemoveRetire(d, id, func(v *int) { retired[id] = v })}
			e := m.entry(id)
			want = []any{e != nil && e.v != nil}
			if e != nil && e.v != nil {
				// Held until the domain has freed it, which here is waited for.
				if err := x.Insert(id, nil); err != idr.ErrExists && retired[id] == nil {
					return calls, fmt.Errorf("Insert of a retired id: %v", err)
				} else if err == nil {
					x.Remove(id)
				}
				d.Barrier(context.Background())
				got, want = append(got, retired[id]), append(want, e.v)
				delete(m.ids, id)
			}
		case 14:
			if id := p.id(); p.int(20) > 0 {
				call("Next(%d)", id)
				at, v, ok := x.Next(id)
				got = []any{at, v, ok}
				at, v, ok = m.next(id)
				want = []any{at, v, ok}
			} else {
				call("Clear()")
				x.Clear()
				clear(m.ids)
			}
		case 15:
			id := p.id()
			call("Find(%d)", id)
			got = []any{x.Find(id)}
			want = []any{(*int)(nil)}
			if e := m.ids[id]; e != nil {
				want = []any{e.v}
			}
		}
		if !slices.Equal(got, want) {
			return calls, fmt.Errorf("got %v, want %v", got, want)
		}
		if x.Len() != len(m.ids) {
			return calls, fmt.Errorf("Len is %d, want %d", x.Len(), len(m.ids))
		}
		idr.Check(&x)
	}
	type pair struct {
		id int
		v  *int
	}
	var got, want []pair
	for id, v := range x.All() {
		got = append(got, pair{id, v})
	}
	for id, e := range m.ids {
		if x.Find(id) != e.v {
			return calls, fmt.Errorf("Find(%d) gives %p, want %p", id, x.Find(id), e.v)
		}
		if e.v != nil {
			want = append(want, pair{id, e.v})
		}
	}
	slices.SortFunc(want, func(a, b pair) int { return cmp.Compare(a.id, b.id) })
	if !slices.Equal(got, want) {
		return calls, fmt.Errorf("All gives %v, want %v", got, want)
	}
	return calls, d.Close(context.Background())
}

func tail(calls []string) []string { return calls[max(0, len(calls)-30):] }

func TestModel(t *testing.T) {
	rounds := 300
	if testing.Short() {
		rounds = 30
	}
	for range rounds {
		seed := rand.Uint64()
		if calls, err := play(&tape{rng: rand.New(rand.NewPCG(seed, 0))}, 600); err != nil {
			t.Fatalf("seed %#x: %v\nthe last calls were: %q", seed, err, tail(calls))
		}
	}
}

func FuzzIDR(f *testing.F) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 10 {
		data := make([]byte, 400)
		for i := range data {
			data[i] = byte(rng.Uint32())
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if calls, err := play(&tape{data: data}, 500); err != nil {
			t.Fatalf("%v\nthe calls were: %q", err, calls)
		}
	})
}
