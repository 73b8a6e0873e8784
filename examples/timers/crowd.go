package main

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quiesce-go/quiesce/examples/timers/posix"
	"github.com/quiesce-go/quiesce/rcu"
)

// The twins, in the order of the table.
const (
	before = iota // one lock around each lookup
	after         // lookups in read sections
	twins
)

var twinNames = [twins]string{"locked", "rcu"}

func newTable(twin int) *posix.Table {
	if twin == before {
		return posix.NewLocked()
	}
	return posix.New(rcu.Default())
}

// batch is the number of calls between two looks at whether that is enough.
const batch = 1024

// A caller is what a process was in the kernel developers' measurement: an owner with one timer, that
// asks again and again how long it is until that expires.
type caller struct {
	thread *posix.Thread
	id     posix.ID
}

// newCallers returns n callers, whose timers are all in t. If they are armed, an answer needs a look at
// the clock, which takes longer than the rest of it; if not, it is little more than the lookup.
func newCallers(t *posix.Table, n int, armed bool) []caller {
	all := make([]caller, n)
	for i := range all {
		o := t.NewOwner()
		id, err := o.Create(posix.Monotonic, nil)
		if err == nil && armed {
			err = o.Settime(id, 1000*time.Hour, 0)
		}
		if err != nil {
			panic(err)
		}
		all[i] = caller{o.NewThread(), id}
	}
	return all
}

// call makes n calls.
func (c caller) call(n int) {
	for range n {
		if _, _, err := c.thread.Gettime(c.id); err != nil {
			panic(err)
		}
	}
}

// start has each caller, in a goroutine of its own, make as many calls at a time as claim says, until
// that is 0. Nobody begins before the function that it returns is called, which returns when all have
// ended.
func start(all []caller, claim func() int) (run func()) {
	var wg sync.WaitGroup
	begin := make(chan struct{})
	for _, c := range all {
		wg.Go(func() {
			<-begin
			for n := claim(); n > 0; n = claim() {
				c.call(n)
			}
		})
	}
	return func() {
		close(begin)
		wg.Wait()
	}
}

// finish ends what newTable and newCallers began.
func finish(t *posix.Table, all []caller) {
	for _, c := range all {
		c.thread.Close()
	}
	if err := t.Close(context.Background()); err != nil {
		panic(err)
	}
}

// throughput has n callers call for about d, and returns how many calls they made in a second.
func throughput(twin, n int, armed bool, d time.Duration) float64 {
	t := newTable(twin)
	all := newCallers(t, n, armed)
	defer finish(t, all)
	var made atomic.Int64
	var stop atomic.Bool
	run := start(all, func() int {
		if stop.Load() {
			return 0
		}
		made.Add(batch)
		return batch
	})
	began := time.Now()
	time.AfterFunc(d, func() { stop.Store(true) })
	run()
	return float64(made.Load()) / time.Since(began).Seconds()
}
