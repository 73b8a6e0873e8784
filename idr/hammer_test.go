package idr_test

import (
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/quiesce-go/quiesce/idr"
)

// TestHammerAlloc has goroutines take and give back ids of overlapping ranges, in every way that
// there is. No id has two owners, and in the end everything is accounted for.
func TestHammerAlloc(t *testing.T) {
	atProcs(t, []int{1, 2, 4}, func(t *testing.T) {
		var x idr.IDR[thing]
		const limit = 10_000
		var owners [limit]atomic.Int32
		var live atomic.Int64
		run := newRun(t)
		for g := range 6 {
			run.Go(func() error {
				rng := rand.New(rand.NewPCG(uint64(g), 1))
				owner := int32(g + 1)
				var mine []int
				for run.More() {
					lo := rng.IntN(limit)
					hi := lo + rng.IntN(limit-lo)
					var id int
					var err error
					switch rng.IntN(8) {
					case 0:
						id, err = x.AllocRange(nil, lo, hi)
					case 1:
						id, err = x.AllocCyclic(nil, lo, hi)
					case 2:
						id, err = lo, x.Insert(lo, nil)
					case 3:
						id, err = x.AllocFunc(lo, hi, func(int) *thing { return nil })
						if err == nil {
							return errorf("AllocFunc gave %d for nil", id)
						}
					case 4, 5:
						id, err = x.AllocFunc(lo, hi, func(id int) *thing {
							if x.Remove(id) != nil {
								t.Errorf("%d had an entry before it was built", id)
							}
							return &thing{id: id}
						})
					default:
						if len(mine) == 0 {
							continue
						}
						i := rng.IntN(len(mine))
						id = mine[i]
						mine[i] = mine[len(mine)-1]
						mine = mine[:len(mine)-1]
						if v := x.Find(id); v != nil && v.id != id {
							return errorf("Find(%d) gave thing %d", id, v.id)
						}
						if !owners[id].CompareAndSwap(owner, 0) {
							return errorf("%d has changed its owner", id)
						}
						live.Add(-1)
						if v := x.Remove(id); v != nil && v.id != id {
							return errorf("Remove(%d) gave thing %d", id, v.id)
						}
						continue
					}
					if err != nil {
						continue
					}
					if id < lo || id > hi {
						return errorf("%d is not in [%d, %d]", id, lo, hi)
					}
					if !owners[id].CompareAndSwap(0, owner) {
						return errorf("%d was given out twice", id)
					}
					live.Add(1)
					mine = append(mine, id)
				}
				return nil
			})
		}
		run.Wait()
		if int64(x.Len()) != live.Load() {
			t.Errorf("Len is %d, and %d are owned", x.Len(), live.Load())
		}
		idr.Check(&x)
		for id := range owners {
			if err := x.Insert(id, nil); (err == idr.ErrExists) != (owners[id].Load() != 0) {
				t.Errorf("%d, owner %d: Insert gives %v", id, owners[id].Load(), err)
			}
		}
		x.Clear()
		if x.Len() != 0 {
			t.Error("Len after Clear", x.Len())
		}
		idr.Check(&x)
	})
}

// TestHammerFind has readers look ids up while the tree and the directory grow and shrink around
// them. Ids that stay are always found, each with its own thing; others are found with their own,
// or not.
func TestHammerFind(t *testing.T) {
	atProcs(t, []int{1, 2, 4}, func(t *testing.T) {
		var x idr.IDR[thing]
		stay := []int{0, 70, 1000, 5000, 1 << 18, 1<<18 + 64, 1 << 30, math.MaxInt}
		for _, id := range stay {
			x.Insert(id, &thing{id: id})
		}
		run := newRun(t)
		run.Go(func() error { // far leaves come and go, and with them inner nodes
			rng := rand.New(rand.NewPCG(1, 1))
			for run.More() {
				bit := 6 + rng.IntN(24)
				for i := range 4 * 64 {
					x.Insert(1<<bit+i, &thing{id: 1<<bit + i})
				}
				for i := range 4 * 64 {
					if id := 1<<bit + i; !slices.Contains(stay, id) {
						x.Remove(id)
					}
				}
			}
			return nil
		})
		run.Go(func() error { // a dense window, in which the directory grows
			for run.More() {
				for id := 64; id < 2000; id++ {
					x.Insert(id, &thing{id: id})
				}
				for id := 64; id < 2000; id++ {
					if !slices.Contains(stay, id) {
						x.Remove(id)
					}
				}
			}
			return nil
		})
		for g := range 2 {
			run.Go(func() error {
				rng := rand.New(rand.NewPCG(uint64(g), 2))
				for run.More() {
					for _, id := range stay {
						if v := x.Find(id); v == nil || v.id != id {
							return errorf("Find(%d) gave %v", id, v)
						}
					}
					for range 20 {
						id := rng.IntN(2500)
						if rng.IntN(2) == 0 {
							id = 1<<(6+rng.IntN(24)) + rng.IntN(4*64)
						}
						if v := x.Find(id); v != nil && v.id != id {
							return errorf("Find(%d) gave thing %d", id, v.id)
						}
					}
				}
				return nil
			})
		}
		run.Go(func() error {
			for run.More() {
				i, last := 0, -1
				for id, v := range x.All() {
					if id <= last || v.id != id {
						return errorf("All gave %d with thing %d after %d", id, v.id, last)
					}
					if id%8 == 0 {
						runtime.Gosched() // in the middle of a leaf, which goes away meanwhile
					}
					if last = id; id == stay[i] {
						i++
					} else if id > stay[i] {
						return errorf("All passed over %d", stay[i])
					}
				}
				if i != len(stay) {
					return errorf("All ended at %d", last)
				}
			}
			return nil
		})
		run.Wait()
		idr.Check(&x)
	})
}

// TestHammerGrow starts with an empty IDR again and again, for growth is at the beginning.
func TestHammerGrow(t *testing.T) {
	atProcs(t, []int{1, 2, 4}, func(t *testing.T) {
		var at atomic.Pointer[idr.IDR[thing]]
		var have atomic.Int64
		at.Store(new(idr.IDR[thing]))
		run := newRun(t)
		run.Go(func() error {
			for run.More() {
				have.Store(0)
				x := new(idr.IDR[thing])
				at.Store(x)
				// Some leaves ahead of the directory, which it has to take in.
				for id := 512; id < 4096; id += 64 {
					if err := x.Insert(id, &thing{id: id}); err != nil {
						return err
					}
				}
				for i := range 512 {
					if _, err := x.AllocFunc(0, 511, func(id int) *thing { return &thing{id: id} }); err != nil {
						return err
					}
					have.Store(int64(i + 1))
				}
			}
			return nil
		})
		for range 2 {
			run.Go(func() error {
				for run.More() {
					n := int(have.Load())
					x := at.Load()
					if int(have.Load()) < n {
						continue // perhaps a new one
					}
					missing := -1
					for id := range n {
						if v := x.Find(id); v == nil {
							missing = id
						} else if v.id != id {
							return errorf("Find(%d) gave thing %d", id, v.id)
						}
					}
					for id := 512; n > 0 && id < 4096; id += 64 {
						if v := x.Find(id); v == nil || v.id != id {
							missing = id
						}
					}
					if missing >= 0 && at.Load() == x && int(have.Load()) >= n {
						return errorf("%d is missing, of %d", missing, n)
					}
				}
				return nil
			})
		}
		run.Wait()
	})
}

// TestHammerRetire recycles things: one that was freed is poisoned and soon another. Readers in a
// section never see that, nor is an id given out while its old thing is in use.
func TestHammerRetire(t *testing.T) {
	atProcs(t, []int{1, 2, 4}, func(t *testing.T) {
		d := newDomain(t)
		var x idr.IDR[thing]
		const ids = 300
		var building [ids]atomic.Bool // set while a thing with that id exists
		pool := make(chan *thing, 4*ids)
		var pairs atomic.Int64
		run := newRun(t)
		for g := range 2 {
			run.Go(func() error {
				rng := rand.New(rand.NewPCG(uint64(g), 3))
				for run.More() {
					_, err := x.AllocFunc(0, ids-1, func(id int) *thing {
						var v *thing
						select {
						case v = <-pool:
						default:
							v = new(thing)
						}
						// Plain writes: if a reader still had it, the race detector would say so.
						v.id, v.dead = id, false
						if !building[id].CompareAndSwap(false, true) {
							t.Errorf("%d was given out before its last thing was freed", id)
						}
						return v
					})
					if err == idr.ErrFull {
						runtime.Gosched() // for d's worker
					} else if err != nil {
						return err
					}
					if err == nil && rng.IntN(4) == 0 {
						continue
					}
					x.RemoveRetire(d, rng.IntN(ids), func(v *thing) {
						pairs.Add(1)
						id := v.id
						v.id, v.dead = -1, true
						building[id].Store(false)
						select {
						case pool <- v:
						default:
						}
					})
				}
				return nil
			})
		}
		for g := range 2 {
			run.Go(func() error {
				rng := rand.New(rand.NewPCG(uint64(g), 4))
				reader := d.NewReader()
				defer reader.Close()
				for run.More() {
					if rng.IntN(50) == 0 {
						runtime.Gosched()
					}
					reader.Lock()
					id := rng.IntN(ids)
					v := x.Find(id)
					for range 50 {
						if v != nil && (v.dead || v.id != id) {
							reader.Unlock()
							return errorf("a thing was freed in the section of who found it by id %d: %+v", id, *v)
						}
					}
					reader.Unlock()
				}
				return nil
			})
		}
		run.Wait()
		if err := d.Barrier(t.Context()); err != nil {
			t.Fatal(err)
		}
		t.Logf("%d pairs of an insertion and a removal", pairs.Load())
		n := 0
		for id, v := range x.All() {
			if n++; v.id != id || v.dead {
				t.Errorf("id %d has %+v", id, *v)
			}
		}
		if x.Len() != n {
			t.Errorf("Len is %d, and %d are there", x.Len(), n)
		}
		idr.Check(&x)
	})
}

// TestHammerClear has Clear beside everything else.
func TestHammerClear(t *testing.T) {
	atProcs(t, []int{1, 2, 4}, func(t *testing.T) {
		d := newDomain(t)
		var x idr.IDR[thing]
		var pending atomic.Int64
		run := newRun(t)
		run.Go(func() error {
			for run.More() {
				x.Clear()
			}
			return nil
		})
		for g := range 3 {
			run.Go(func() error {
				rng := rand.New(rand.NewPCG(uint64(g), 5))
				for run.More() {
					id, err := x.AllocFunc(0, 1000, func(id int) *thing { return &thing{id: id} })
					if err == idr.ErrFull {
						continue // of ids that are held
					}
					if v := x.Find(id); v != nil && v.id != id {
						return errorf("Find(%d) gave thing %d", id, v.id)
					}
					for id, v := range x.From(rng.IntN(100)) {
						if v.id != id {
							return errorf("All gave %d with thing %d", id, v.id)
						}
					}
					if x.RemoveRetire(d, id, func(*thing) { pending.Add(-1) }) {
						pending.Add(1)
					}
				}
				return nil
			})
		}
		run.Wait()
		if err := d.Barrier(t.Context()); err != nil {
			t.Fatal(err)
		}
		x.Clear()
		if x.Len() != 0 || pending.Load() != 0 {
			t.Errorf("Len %d, %d pending", x.Len(), pending.Load())
		}
		idr.Check(&x)
	})
}
