package idr_test

import (
	"flag"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/quiesce-go/quiesce/idr"
)

var pairs = flag.Int("pairs", 0, "how many pairs of an insertion and a removal TestHammerPairs makes; 0 is 100,000, or 3000 with -short")

// TestHammerPairs makes a given number of insertions, each with a removal to it, while readers look. In
// two of three windows of ids things are retired and recycled: one that was freed is poisoned, and
// soon it is another. In the others they are removed, and their ids come again at once. As windows,
// near and far, are filled and emptied, leaves, inner nodes and directories come and go; what the
// collector gets of them it gives out again. Readers never see a thing that is poisoned or another
// id's; ids that stay are always found; no id is given out while its last thing is in use; and in
// the end each insertion had its removal, and all ids are free that should be.
func TestHammerPairs(t *testing.T) {
	stay := []int{63, 1 << 12, 1<<12 + 64, 1 << 18, 1 << 24, 1<<30 + 100, math.MaxInt}
	windows := [...]int{0, 1 << 11, 1 << 12, 1<<18 - 500, 1 << 20, 1 << 30, math.MaxInt - 2000}
	const window = 1500
	seed := rand.Uint64()
	procs := []int{1, 2, 4}
	goal := *pairs
	if goal == 0 && testing.Short() {
		goal = 3000
	} else if goal == 0 {
		goal = 100_000
	}
	goal = (goal + len(procs) - 1) / len(procs)
	atProcs(t, procs, func(t *testing.T) {
		d := newDomain(t)
		var x idr.IDR[thing]
		for _, id := range stay {
			x.Insert(id, &thing{id: id})
		}
		// What is plain here is ordered by the IDR and the Domain, or the race detector says so.
		var inUse [len(windows)][window + 1]bool // by window: there is a thing with that id
		var freed int                            // of d's worker
		var poisoned []*thing                    // the same
		recycled := make(chan []*thing, 64)
		var inserted, retired, writing atomic.Int64
		run := newRunOf(t)
		for g := range 2 {
			writing.Add(1)
			run.Go(func() error {
				defer func() {
					if writing.Add(-1) == 0 {
						run.over.Store(true)
					}
				}()
				rng := rand.New(rand.NewPCG(seed, uint64(g)))
				var mine []int
				var old []*thing
				for n := 0; run.More() && inserted.Load() < int64(goal); {
					w := rng.IntN(len(windows))
					lo := windows[w]
					// As many as there is room for, with what the other one has and what is not freed yet.
					for mine = mine[:0]; len(mine) < window/2; {
						id, err := x.AllocFunc(lo, lo+window, func(id int) *thing {
							if inUse[w][id-lo] {
								run.Errorf("%d was given out before its last thing was freed", id)
							}
							inUse[w][id-lo] = true
							if len(old) == 0 {
								select {
								case old = <-recycled:
								default:
									return &thing{id: id}
								}
							}
							v := old[len(old)-1]
							old = old[:len(old)-1]
							v.id, v.dead = id, false
							return v
						})
						if err == idr.ErrFull {
							break
						} else if err != nil {
							return err
						}
						mine = append(mine, id)
					}
					inserted.Add(int64(len(mine)))
					if w%3 != 0 {
						retired.Add(int64(len(mine)))
					}
					rng.Shuffle(len(mine), func(i, j int) { mine[i], mine[j] = mine[j], mine[i] })
					for _, id := range mine {
						if w%3 == 0 {
							inUse[w][id-lo] = false
							if v := x.Remove(id); v == nil || v.id != id {
								return errorf("%d is lost: Remove gives %v", id, v)
							}
							continue
						}
						if !x.RemoveRetire(d, id, func(v *thing) {
							if v.dead || v.id != id {
								run.Errorf("%d is lost: it had %+v", id, *v)
							}
							v.id, v.dead = -1, true
							inUse[w][id-lo] = false
							freed++
							if poisoned = append(poisoned, v); len(poisoned) == 100 {
								select {
								case recycled <- poisoned:
								default:
								}
								poisoned = nil
							}
						}) {
							return errorf("%d is lost: it is not there to be removed", id)
						}
					}
					if n += len(mine) + 100; n > 1<<13 { // or there is more and more to be freed
						n = 0
						if err := d.Barrier(t.Context()); err != nil {
							return err
						}
					}
				}
				return nil
			})
		}
		for g := range 2 {
			run.Go(func() error {
				rng := rand.New(rand.NewPCG(seed, uint64(2+g)))
				reader := d.NewReader()
				defer reader.Close()
				right := func(id int, v *thing) error {
					if v.dead || v.id != id {
						return errorf("what has the id %d is stale: %+v", id, *v)
					}
					return nil
				}
				look := func(round int) error {
					reader.Lock()
					defer reader.Unlock()
					for _, id := range stay {
						if v := x.Find(id); v == nil {
							return errorf("%d is lost", id)
						} else if err := right(id, v); err != nil {
							return err
						}
					}
					for range 20 {
						id := windows[rng.IntN(len(windows))] + rng.IntN(window)
						v := x.Find(id)
						if rng.IntN(10) == 0 {
							runtime.Gosched() // it may be removed meanwhile, but not freed
						}
						if v != nil {
							if err := right(id, v); err != nil {
								return err
							}
						}
					}
					if round%4 != 0 {
						return nil
					}
					i := 0
					for id, v := range x.All() {
						if err := right(id, v); err != nil {
							return err
						}
						if rng.IntN(200) == 0 {
							runtime.Gosched() // in the middle of a leaf, which goes away meanwhile
						}
						if id == stay[i] {
							i++
						} else if id > stay[i] {
							return errorf("All passed over %d", stay[i])
						}
					}
					if i != len(stay) {
						return errorf("All ended before %d", stay[i])
					}
					return nil
				}
				for round := 0; run.More(); round++ {
					if err := look(round); err != nil {
						return err
					}
				}
				return nil
			})
		}
		run.Go(func() error {
			for ticks := 1; run.More(); ticks++ {
				if time.Sleep(10 * time.Millisecond); ticks%1000 == 0 {
					t.Logf("%d of %d pairs", inserted.Load(), goal)
				}
			}
			return nil
		})
		run.Wait()
		if err := d.Barrier(t.Context()); err != nil {
			t.Fatal(err)
		}
		t.Logf("%d pairs, %d of them with one of %d grace periods", inserted.Load(), freed, d.Stats().GracePeriods)
		if inserted.Load() < int64(goal) || retired.Load() != int64(freed) {
			t.Errorf("%d inserted, %d retired, %d freed", inserted.Load(), retired.Load(), freed)
		}
		wantIDs(t, &x, stay...)
		if x.Len() != len(stay) {
			t.Errorf("Len is %d, want %d", x.Len(), len(stay))
		}
		for w, lo := range windows {
			for id := lo; id <= lo+window; id++ {
				if inUse[w][id-lo] {
					t.Errorf("%d is lost: its thing was not freed", id)
				}
				if err := x.Insert(id, nil); (err == idr.ErrExists) != slices.Contains(stay, id) {
					t.Errorf("%d is lost: Insert gives %v", id, err)
				}
			}
		}
	})
}
