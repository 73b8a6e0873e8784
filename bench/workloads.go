package main

import (
	"context"
	"fmt"
	"runtime/metrics"
	"time"

	"github.com/quiesce-go/quiesce/examples/timers/posix"
	"github.com/quiesce-go/quiesce/internal/tier"
	"github.com/quiesce-go/quiesce/rcu"
)

// waiting is, of the time of all goroutines of a measurement, the share in which they waited for a
// lock, by the runtime's own account.
const waiting = "lock-wait-%"

// lockWait returns the seconds that goroutines have waited for locks so far.
func lockWait() float64 {
	s := []metrics.Sample{{Name: "/sync/mutex/wait/total:seconds"}}
	metrics.Read(s)
	return s[0].Value.Float64()
}

// timers is the first thread: 16 callers of timer_gettime took 78.67 s with one lock around all lookups
// of ids, and 3.30 s with lookups in read sections.
func timers() []row {
	var rows []row
	for _, cpus := range cpuCounts() {
		for _, n := range []int{1, 2, 4, 8, 16} {
			locked := impl{name: "locked", open: timerCallers(posix.NewLocked, n)}
			if n == 16 {
				locked.thread = 3.30 / 78.67
				if cpus > 1 {
					locked.must, locked.goal = 1/4., 1/6.
				}
			}
			rows = append(rows, row{name: fmt.Sprintf("Timers/goroutines=%d", n), cpus: cpus, tier: tier.RSEQ, impls: []impl{
				{name: "rcu", open: timerCallers(func() *posix.Table { return posix.New(rcu.Default()) }, n)},
				locked,
			}})
		}
	}
	return rows
}

// timerCallers has n goroutines ask how long it is until a timer of their own expires, which is not
// armed, so that there is little but the lookup.
func timerCallers(table func() *posix.Table, n int) func() work {
	return func() work {
		t := table()
		threads := make([]*posix.Thread, n)
		ids := make([]posix.ID, n)
		for i := range threads {
			o := t.NewOwner()
			id, err := o.Create(posix.Monotonic, nil)
			if err != nil {
				panic(err)
			}
			threads[i], ids[i] = o.NewThread(), id
		}
		w := work{
			goroutines: n,
			each: func(worker int) func(int) {
				thread, id := threads[worker], ids[worker]
				return func(n int) {
					for range n {
						if _, _, err := thread.Gettime(id); err != nil {
							panic(err)
						}
					}
				}
			},
			close: func() {
				for _, thread := range threads {
					thread.Close()
				}
				if err := t.Close(context.Background()); err != nil {
					panic(err)
				}
			},
		}
		return watchLocks(w)
	}
}

// watchLocks adds to the samples of w what share of the time its goroutines waited for locks.
func watchLocks(w work) work {
	batch := calibrate(w)
	once := w
	once.each = nil
	once.once = func(d time.Duration) sample {
		before := lockWait()
		t := time.Now()
		s := step(w, batch, d)
		all := time.Since(t).Seconds() * float64(w.goroutines)
		s.more = map[string]float64{waiting: 100 * (lockWait() - before) / all}
		return s
	}
	return once
}
