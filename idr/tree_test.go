package idr

import (
	"math/rand/v2"
	"reflect"
	"sync/atomic"
	"testing"
)

// A parked is a reader that was stopped in the middle: in a node, or with a directory and its size
// in hand. What it finds there later is to be right for some moment since.
type parked struct {
	at    *core
	where *node            // nil for a directory
	still map[uintptr]*obj // what was there when it stopped, and was not touched since
}

func (p *parked) covers(id uintptr) bool {
	if p.where == nil {
		return id < p.at.size.Load()
	}
	return p.where.slot(id) < fan
}

// TestParked stops readers in all places and has the tree change under them. Facts 1 to 4 of
// tree.go.
func TestParked(t *testing.T) {
	rounds := 8
	if testing.Short() {
		rounds = 2
	}
	for range rounds {
		seed := rand.Uint64()
		rng := rand.New(rand.NewPCG(seed, 0))
		var c core
		var readers []*parked
		values := make(map[uintptr]*obj)
		park := func(at *core, where *node) {
			p := &parked{at: at, where: where, still: make(map[uintptr]*obj)}
			for id, v := range values {
				if p.covers(id) {
					p.still[id] = v
				}
			}
			readers = append(readers, p)
		}
		var parkBelow func(n *node)
		parkBelow = func(n *node) {
			at := new(core)
			at.root.Store(n)
			park(at, n)
			for i := range uintptr(fan) {
				if n.shift == 0 {
					break
				}
				if kid := asNode(n.at(i).Load()); kid != nil {
					parkBelow(kid)
				}
			}
		}
		randomID := func() uintptr {
			return uintptr(rng.IntN(8)<<(6*rng.IntN(4)) + rng.IntN(3)<<6 + rng.IntN(3))
		}
		for step := range 1500 {
			id := randomID()
			if values[id] == nil {
				v := erase(&id) // its own, for each id
				if err := c.insert(id, v); err != nil {
					t.Fatal(err)
				}
				values[id] = v
			} else {
				if c.remove(id) != values[id] {
					t.Fatalf("seed %#x, step %d: remove(%#x)", seed, step, id)
				}
				delete(values, id)
			}
			for _, p := range readers {
				delete(p.still, id)
			}
			if step%100 == 0 {
				readers = readers[max(0, len(readers)-60):]
				if root := c.root.Load(); root != nil {
					parkBelow(root)
				}
				if len(c.entries) > 0 {
					at := new(core)
					at.dir.store(c.entries)
					at.size.Store(c.size.Load())
					park(at, nil)
				}
			}
			if step%50 != 49 {
				continue
			}
			for _, p := range readers {
				for id, v := range p.still {
					if got := find(p.at, id, lookup); got != v {
						t.Fatalf("seed %#x, step %d: a parked reader finds %p for %#x, not %p", seed, step, got, id, v)
					}
					if leaf := p.at.root.Load().next(id); p.where != nil && (leaf == nil || leaf.slot(id) >= fan) {
						t.Fatalf("seed %#x, step %d: a parked iteration passes over %#x", seed, step, id)
					}
				}
				for range 30 {
					id := randomID()
					if v := find(p.at, id, lookup); p.covers(id) && v != nil && *restore[uintptr](v) != id {
						t.Fatalf("seed %#x, step %d: a parked reader finds %#x for %#x", seed, step, *restore[uintptr](v), id)
					}
				}
			}
			c.mu.Lock()
			c.checkLocked(c.checkEntries)
			c.mu.Unlock()
		}
	}
}

// Emptied leaves go, but for one; so do inner nodes.
func TestUnlink(t *testing.T) {
	var c core
	v := erase(new(int))
	for _, step := range []uintptr{1, 64, 4096, 1 << 20, 1 << 25} {
		for i := range uintptr(1000) {
			c.insert(i*step, v)
		}
		for i := range uintptr(1000) {
			c.remove(i * step)
		}
		if c.nleaves != 1 || c.root.Load() != c.idle || c.idle.full != 0 {
			t.Errorf("step %d: %d leaves are left", step, c.nleaves)
		}
		c.mu.Lock()
		c.checkLocked(c.checkEntries)
		c.mu.Unlock()
	}
}

// The bits in leaves and above are right, and that of the hole is not forgotten, while leaves become
// full, are opened, and go, and nodes come and go above them.
func TestMarks(t *testing.T) {
	seed := rand.Uint64()
	rng := rand.New(rand.NewPCG(seed, 0))
	defer func() {
		if p := recover(); p != nil {
			t.Fatalf("seed %#x: %v", seed, p)
		}
	}()
	var c core
	v := erase(new(int))
	leaves := []uintptr{0, 1 * fan, 2 * fan, fan * fan, fan*fan + 1*fan, 1 << 30}
	for range 5000 {
		first := leaves[rng.IntN(len(leaves))]
		one := first + uintptr(rng.IntN(fan))
		switch rng.IntN(8) {
		case 0:
			for id := first; id < first+fan; id++ {
				c.remove(id)
			}
		case 1, 2, 3:
			for id := first; id < first+fan; id++ {
				c.insert(id, v)
			}
		case 4:
			lowest := one
			for lowest <= one+fan && c.hasLocked(c.leafLocked(lowest), lowest) {
				lowest++
			}
			if id, err := c.alloc(v, one, one+fan); err == nil && id != lowest || err != nil && lowest <= one+fan {
				t.Fatalf("seed %#x: alloc gives %#x and %v, the lowest is %#x", seed, id, err, lowest)
			}
		default:
			c.remove(one)
		}
		c.checkLocked(c.checkEntries)
	}
}

// The directory grows with dense ids, and not for others.
func TestDirectory(t *testing.T) {
	v := erase(new(int))
	places := func(ids ...uintptr) int {
		var c core
		for _, id := range ids {
			c.insert(id, v)
		}
		return len(c.entries)
	}
	dense := make([]uintptr, 5000)
	sparse := make([]uintptr, 5000)
	for i := range dense {
		dense[i] = uintptr(i)
		sparse[i] = uintptr(i) * 1000 // one leaf of sixteen
	}
	for _, test := range []struct {
		name string
		got  int
		want int
	}{
		{"one id", places(0), 1},
		{"the second leaf", places(64), 2},
		{"the fourth leaf", places(255), 4},
		{"the fifth leaf alone", places(256), 0},
		{"far away", places(1 << 30), 0},
		{"dense", places(dense...), 128},
		{"dense, and one far away", places(append(dense, 1<<24)...), 128},
		{"one far away, and dense", places(append([]uintptr{1 << 24}, dense...)...), 128},
	} {
		if test.got != test.want {
			t.Errorf("%s: a directory of %d places, want %d", test.name, test.got, test.want)
		}
	}
	if got := places(sparse...); got > 8 {
		t.Errorf("sparse: a directory of %d places", got)
	}
}

func TestSizes(t *testing.T) {
	word := reflect.TypeFor[uintptr]().Size()
	if got := reflect.TypeFor[slots]().Size(); got != fan*word {
		t.Errorf("slots have %d bytes, want %d", got, fan*word)
	}
	if got, want := reflect.TypeFor[node]().Size(), 4*word+2*8; got != want {
		t.Errorf("a node has %d bytes, want %d", got, want)
	}
	// What readers load and what writers write are apart.
	read := reflect.TypeFor[core]()
	root, _ := read.FieldByName("root")
	mu, _ := read.FieldByName("mu")
	if mu.Offset-root.Offset-word < cacheLine {
		t.Errorf("mu is at %d, root at %d", mu.Offset, root.Offset)
	}
	if reflect.TypeFor[atomic.Pointer[obj]]().Size() != word {
		t.Error("an atomic.Pointer is not one word")
	}
}
