package main

import (
	"sync"

	"github.com/puzpuzpuz/xsync/v4"

	"github.com/quiesce-go/quiesce/idr"
	"github.com/quiesce-go/quiesce/internal/tier"
)

type object struct {
	id uint64
	_  [3]uint64
}

var tableSizes = []struct {
	name string
	n    int
}{{"1k", 1 << 10}, {"64k", 1 << 16}, {"1M", 1 << 20}}

// The ids of a loop come from a generator in a register, or one after the other; all are present, and no
// lookup waits for the last.
const (
	lcgMul = 6364136223846793005
	lcgAdd = 1442695040888963407
)

// A table is looked up in by two loops, each of which begins with the state x and returns the last one.
type table struct{ dense, random func(x uint64, n int) uint64 }

func finds() []row {
	var rows []row
	objects := make([]object, tableSizes[len(tableSizes)-1].n)
	for i := range objects {
		objects[i].id = uint64(i)
	}
	for _, size := range tableSizes {
		some := objects[:size.n]
		tables := []tableImpl{
			{impl{name: "idr.IDR"}, func() table { return idrTable(some) }},
			{impl{name: "slice", must: 1.6, goal: 1.3}, func() table { return sliceTable(some) }},
			{impl{name: "xsync.Map", must: 0.3}, func() table { return xsyncTable(some, 1) }},
			{impl{name: "sync.Map"}, func() table { return syncMapTable(some, 1) }},
			{impl{name: "RWMutex+map"}, func() table { return lockedTable(some, 1) }},
		}
		if size.n > 1<<10 {
			tables[3].must = 0.1
		}
		rows = append(rows, findRows("Find/n="+size.name, tables)...)
	}
	some := objects[:1<<16]
	return append(rows, findRows("FindSparse/n=64k", []tableImpl{
		{impl{name: "idr.IDR"}, func() table { return sparseTable(some, sparse) }},
		{impl{name: "xsync.Map"}, func() table { return xsyncTable(some, sparse) }},
		{impl{name: "sync.Map"}, func() table { return syncMapTable(some, sparse) }},
		{impl{name: "RWMutex+map"}, func() table { return lockedTable(some, sparse) }},
	})...)
}

// sparse is how far sparse ids are apart: so far that each is in a leaf of its own, which no directory
// has.
const sparse = 1000

type tableImpl struct {
	impl
	get func() table
}

// findRows are the rows of some tables. Each table is filled once, for all rows.
func findRows(name string, tables []tableImpl) (rows []row) {
	for i := range tables {
		tables[i].get = sync.OnceValue(tables[i].get)
	}
	for _, order := range []string{"dense", "random"} {
		for _, cpus := range cpuCounts() {
			r := row{name: name + "/order=" + order, cpus: cpus, tier: tier.RSEQ}
			for _, t := range tables {
				im := t.impl
				im.open = func() work {
					f := t.get().dense
					if order == "random" {
						f = t.get().random
					}
					return work{each: func(worker int) func(int) {
						x := uint64(worker) * 0x9e3779b97f4a7c15
						return func(n int) { x = f(x, n) }
					}}
				}
				r.impls = append(r.impls, im)
			}
			rows = append(rows, r)
		}
	}
	return rows
}

// found ends a loop: it makes what was found used.
func found(n, want int) {
	if n != want {
		panic("an id was not found")
	}
}

func idrTable(objects []object) table {
	t, mask := new(idr.IDR[object]), uint64(len(objects)-1)
	for i := range objects {
		if _, err := t.Alloc(&objects[i]); err != nil {
			panic(err)
		}
	}
	return table{
		func(x uint64, n int) uint64 {
			hits := 0
			for range n {
				x++
				if t.Find(int(x&mask)) != nil {
					hits++
				}
			}
			found(hits, n)
			return x
		},
		func(x uint64, n int) uint64 {
			hits := 0
			for range n {
				x = x*lcgMul + lcgAdd
				if t.Find(int(x>>33&mask)) != nil {
					hits++
				}
			}
			found(hits, n)
			return x
		},
	}
}

// sliceTable is the floor: it cannot grow, nor be changed beside lookups.
func sliceTable(objects []object) table {
	t, mask := make([]*object, len(objects)), uint64(len(objects)-1)
	for i := range t {
		t[i] = &objects[i]
	}
	return table{
		func(x uint64, n int) uint64 {
			hits := 0
			for range n {
				x++
				if id := x & mask; id < uint64(len(t)) && t[id] != nil {
					hits++
				}
			}
			found(hits, n)
			return x
		},
		func(x uint64, n int) uint64 {
			hits := 0
			for range n {
				x = x*lcgMul + lcgAdd
				if id := x >> 33 & mask; id < uint64(len(t)) && t[id] != nil {
					hits++
				}
			}
			found(hits, n)
			return x
		},
	}
}

// sparseTable is for ids that are apart, and takes as long as the others' call for its own.
func sparseTable(objects []object, step int) table {
	t := new(idr.IDR[object])
	for i := range objects {
		if err := t.Insert(i*step, &objects[i]); err != nil {
			panic(err)
		}
	}
	return calling(len(objects), func(id int) *object { return t.Find(id * step) })
}

func xsyncTable(objects []object, step int) table {
	t := xsync.NewMap[int, *object](xsync.WithPresize(len(objects)))
	for i := range objects {
		t.Store(i*step, &objects[i])
	}
	return calling(len(objects), func(id int) *object {
		v, _ := t.Load(id * step)
		return v
	})
}

func syncMapTable(objects []object, step int) table {
	t := new(sync.Map)
	for i := range objects {
		t.Store(i*step, &objects[i])
	}
	return calling(len(objects), func(id int) *object {
		v, _ := t.Load(id * step)
		return v.(*object)
	})
}

func lockedTable(objects []object, step int) table {
	t := make(map[int]*object, len(objects))
	for i := range objects {
		t[i*step] = &objects[i]
	}
	var mu sync.RWMutex
	return calling(len(objects), func(id int) *object {
		mu.RLock()
		v := t[id*step]
		mu.RUnlock()
		return v
	})
}

// calling makes loops for tables that are slow enough for a call not to matter.
func calling(size int, get func(id int) *object) table {
	mask := uint64(size - 1)
	return table{
		func(x uint64, n int) uint64 {
			hits := 0
			for range n {
				x++
				if get(int(x&mask)) != nil {
					hits++
				}
			}
			found(hits, n)
			return x
		},
		func(x uint64, n int) uint64 {
			hits := 0
			for range n {
				x = x*lcgMul + lcgAdd
				if get(int(x>>33&mask)) != nil {
					hits++
				}
			}
			found(hits, n)
			return x
		},
	}
}

// allocs are objects that come and go beside n that stay: one operation removes an id and allocates
// one.
func allocs() []row {
	var rows []row
	for _, size := range tableSizes {
		objects := make([]object, size.n)
		for _, cpus := range cpuCounts() {
			rows = append(rows, row{name: "AllocRemove/n=" + size.name, cpus: cpus, tier: tier.RSEQ, impls: []impl{
				{name: "idr.IDR", open: func() work {
					var t idr.IDR[object]
					for i := range objects {
						if _, err := t.Alloc(&objects[i]); err != nil {
							panic(err)
						}
					}
					return comeAndGo(size.n, t.Remove, func(v *object) {
						if _, err := t.Alloc(v); err != nil {
							panic(err)
						}
					})
				}},
				{name: "RWMutex+map+free", must: 0.5, open: func() work {
					t := freeList{m: make(map[int]*object, size.n)}
					for i := range objects {
						t.alloc(&objects[i])
					}
					return comeAndGo(size.n, t.remove, t.alloc)
				}},
			}})
		}
	}
	return rows
}

func comeAndGo(size int, remove func(id int) *object, alloc func(*object)) work {
	return work{each: func(worker int) func(int) {
		x := uint64(worker) * 0x9e3779b97f4a7c15
		return func(n int) {
			for range n {
				x = x*lcgMul + lcgAdd
				if v := remove(int(x >> 33 & uint64(size-1))); v != nil {
					alloc(v)
				}
			}
		}
	}}
}

// A freeList is what one writes without an IDR: a map of the objects and a list of the ids that were
// freed.
type freeList struct {
	mu   sync.RWMutex
	m    map[int]*object
	free []int
	next int
}

func (t *freeList) alloc(v *object) {
	t.mu.Lock()
	defer t.mu.Unlock()
	id := t.next
	if n := len(t.free); n > 0 {
		id, t.free = t.free[n-1], t.free[:n-1]
	} else {
		t.next++
	}
	t.m[id] = v
}

func (t *freeList) remove(id int) *object {
	t.mu.Lock()
	defer t.mu.Unlock()
	v := t.m[id]
	if v != nil {
		delete(t.m, id)
		t.free = append(t.free, id)
	}
	return v
}
