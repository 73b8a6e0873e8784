package idr_test

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/quiesce-go/quiesce/idr"
)

type opKind int

const (
	opFind opKind = iota
	opInsert
	opReplace
	opSwap
	opRemove
	opKinds
)

// An op is one call for the id that the history is of, with the times of its begin and end. Values
// are numbers: 0 is nil, and -1 in a state is a free id.
type op struct {
	kind       opKind
	old, new   int
	value      int // returned
	ok         bool
	begin, end int64
}

func (o op) String() string {
	name := [...]string{"Find", "Insert", "Replace", "CompareAndSwap", "Remove"}[o.kind]
	return fmt.Sprintf("[%d %d] %s(old %d, new %d) = %d, %v", o.begin, o.end, name, o.old, o.new, o.value, o.ok)
}

// step returns the state after o, and whether o can have given what it did in the given state.
func (o op) step(state int) (int, bool) {
	switch o.kind {
	case opFind:
		return state, o.value == max(state, 0)
	case opInsert:
		if state < 0 {
			return o.new, o.ok
		}
		return state, !o.ok
	case opReplace:
		if state < 0 {
			return state, !o.ok
		}
		return o.new, o.ok && o.value == state
	case opSwap:
		if state == o.old { // old is not negative
			return o.new, o.ok
		}
		return state, !o.ok
	case opRemove:
		return -1, o.value == max(state, 0)
	}
	panic("no such op")
}

// linearizable reports whether there is an order of the ops, in which each that ended before
// another began is before it, and each gives what it gave. It tries all, but no set of ops that are
// done and state after them twice (Wing and Gong, with Lowe's memory).
func linearizable(ops []op) bool {
	type seen struct {
		done  uint64
		state int
	}
	memory := make(map[seen]bool)
	all := uint64(1)<<len(ops) - 1
	var try func(done uint64, state int) bool
	try = func(done uint64, state int) bool {
		if done == all {
			return true
		}
		if memory[seen{done, state}] {
			return false
		}
		memory[seen{done, state}] = true
		first := int64(1<<63 - 1) // the end of what ended first
		for i, o := range ops {
			if done>>i&1 == 0 {
				first = min(first, o.end)
			}
		}
		for i, o := range ops {
			if done>>i&1 == 0 && o.begin < first {
				if next, ok := o.step(state); ok && try(done|1<<i, next) {
					return true
				}
			}
		}
		return false
	}
	return try(0, -1)
}

// The checker finds what it is to find.
func TestLinearizable(t *testing.T) {
	find := func(v int, begin, end int64) op { return op{kind: opFind, value: v, begin: begin, end: end} }
	insert := op{kind: opInsert, new: 1, ok: true, begin: 1, end: 4}
	for i, test := range []struct {
		want bool
		ops  []op
	}{
		{true, nil},
		{true, []op{insert, find(0, 2, 3)}},
		{true, []op{insert, find(1, 2, 3)}},
		{true, []op{insert, find(1, 5, 6)}},
		{false, []op{insert, find(0, 5, 6)}},
		{false, []op{insert, find(1, 2, 3), find(0, 5, 6)}},
		{false, []op{insert, {kind: opRemove, value: 1, begin: 5, end: 8}, {kind: opRemove, value: 1, begin: 6, end: 7}}},
		{true, []op{insert, {kind: opSwap, old: 1, new: 2, ok: true, begin: 5, end: 8}, {kind: opRemove, value: 2, begin: 6, end: 7}}},
		{false, []op{insert, {kind: opSwap, old: 1, new: 2, ok: true, begin: 5, end: 8}, {kind: opRemove, value: 1, begin: 6, end: 7}}},
	} {
		if linearizable(test.ops) != test.want {
			t.Errorf("%d: not %v: %v", i, test.want, test.ops)
		}
	}
}

func TestLinear(t *testing.T) {
	testLinear(t, []opKind{opFind, opInsert, opReplace, opSwap, opRemove})
}

// testLinear runs calls of some kinds for one id beside each other, and looks at their results.
// Other goroutines make the leaf of the id come and go, and the directory grow.
func testLinear(t *testing.T, kinds []opKind) {
	const workers, calls = 4, 6
	seed := rand.Uint64()
	t.Logf("seed %#x", seed)
	rounds := 3000
	if testing.Short() {
		rounds = 300
	}
	atProcs(t, []int{1, 2, 4}, func(t *testing.T) {
		rng := rand.New(rand.NewPCG(seed, 0))
		var values [8]*thing
		number := map[*thing]int{nil: 0}
		for i := 1; i < len(values); i++ {
			values[i] = &thing{id: i}
			number[values[i]] = i
		}
		for range rounds {
			var x idr.IDR[thing]
			const id = 200
			x.Insert(id, nil)
			ops := [workers][]op{}
			for w := range ops {
				for range calls {
					ops[w] = append(ops[w], op{
						kind: kinds[rng.IntN(len(kinds))], old: rng.IntN(3), new: rng.IntN(3),
					})
				}
			}
			var clock atomic.Int64
			var wg sync.WaitGroup
			start := make(chan struct{})
			for w := range ops {
				yields := rng.Uint32()
				wg.Go(func() {
					<-start
					for i := range ops[w] {
						if yields>>i&1 != 0 {
							runtime.Gosched()
						}
						o := &ops[w][i]
						o.begin = clock.Add(1)
						switch o.kind {
						case opFind:
							o.value = number[x.Find(id)]
						case opInsert:
							o.ok = x.Insert(id, values[o.new]) == nil
						case opReplace:
							v, err := x.Replace(id, values[o.new])
							o.value, o.ok = number[v], err == nil
						case opSwap:
							o.ok = x.CompareAndSwap(id, values[o.old], values[o.new])
						case opRemove:
							o.value = number[x.Remove(id)]
						}
						o.end = clock.Add(1)
					}
				})
			}
			wg.Go(func() { // neighbours: a leaf before it, a leaf far away, and what empties them
				<-start
				for i := range 4 {
					x.Insert(i<<20, values[7])
					x.Insert(i*64, values[7])
					x.Remove(i << 20)
				}
			})
			close(start)
			wg.Wait()
			history := []op{{kind: opInsert, ok: true, begin: -2, end: -1}} // the reservation
			for _, o := range ops {
				history = append(history, o...)
			}
			if !linearizable(history) {
				lines := make([]string, len(history))
				for i, o := range history {
					lines[i] = o.String()
				}
				t.Fatalf("not linearizable:\n%s", strings.Join(lines, "\n"))
			}
			idr.Check(&x)
		}
	})
}
