package main

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quiesce-go/quiesce/examples/sem/sysv"
)

// mixedArrays and mixedSems are the arrays of a mixed load, and the semaphores in each.
const (
	mixedArrays = 64
	mixedSems   = 16
)

// mixed has users do what the processes of a database do with semaphores, for about d, and returns how
// many calls they made in a second. Of a hundred calls 80 are operations, on two semaphores at once; the
// others look at values and at arrays, and set values; and one of a thousand removes an array and
// makes another.
func mixed(twin, users int, d time.Duration) float64 {
	table := newTable(twin)
	creator := table.NewOwner(sysv.Credentials{PID: 1, UID: 1000, GID: 100}).NewThread()
	defer creator.Close()
	fresh := func(th *sysv.Thread) uint64 {
		id, err := th.Get(sysv.Private, mixedSems, sysv.Create|0o660)
		if err != nil {
			panic(err)
		}
		return uint64(id)
	}
	var ids [mixedArrays]atomic.Uint64
	for i := range ids {
		ids[i].Store(fresh(creator))
	}

	var made atomic.Int64
	var stop atomic.Bool
	var wg sync.WaitGroup
	begin := make(chan struct{})
	for i := range users {
		// Who removes arrays has to be allowed to, so all are of one user.
		th := table.NewOwner(sysv.Credentials{PID: 2 + i, UID: 1000, GID: 100}).NewThread()
		rng := rand.New(rand.NewPCG(uint64(i), 1))
		wg.Go(func() {
			defer th.Close()
			ops := []sysv.Op{{Delta: 1}, {Delta: 1}}
			<-begin
			for !stop.Load() {
				for range batch {
					at := &ids[rng.IntN(mixedArrays)]
					err := mix(th, sysv.ID(at.Load()), rng, ops, func() uint64 { return at.Swap(fresh(th)) })
					if err != nil && !errors.Is(err, sysv.EIDRM) {
						panic(err)
					}
				}
				made.Add(batch)
			}
		})
	}
	began := time.Now()
	time.AfterFunc(d, func() { stop.Store(true) })
	close(begin)
	wg.Wait()
	perS := float64(made.Load()) / time.Since(began).Seconds()
	for i := range ids {
		if err := creator.Remove(sysv.ID(ids[i].Load())); err != nil {
			panic(err)
		}
	}
	return perS
}

// mix makes one call. replace puts another array in the place of this one, and returns it to be removed.
func mix(th *sysv.Thread, id sysv.ID, rng *rand.Rand, ops []sysv.Op, replace func() uint64) (err error) {
	num := rng.IntN(mixedSems)
	switch n := rng.IntN(1000); {
	case n < 800:
		// Values go up and down, and nobody waits: what cannot be taken now is not.
		ops[0].Num, ops[1].Num = num, (num+1)%mixedSems
		ops[0].Flags, ops[1].Flags = sysv.NoWait, sysv.NoWait
		ops[0].Delta, ops[1].Delta = -1, -1
		if n%2 == 0 {
			ops[0].Delta, ops[1].Delta = 1, 1
		}
		if err = th.Op(context.Background(), id, ops); errors.Is(err, sysv.EAGAIN) || errors.Is(err, sysv.ERANGE) {
			err = nil
		}
	case n < 900:
		_, err = th.GetVal(id, num)
	case n < 960:
		_, err = th.Stat(id)
	case n < 999:
		err = th.SetVal(id, num, 100)
	default:
		err = th.Remove(sysv.ID(replace()))
	}
	return err
}
