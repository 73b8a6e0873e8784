package main

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quiesce-go/quiesce/examples/namespace/ns"
	"github.com/quiesce-go/quiesce/examples/sem/sysv"
	"github.com/quiesce-go/quiesce/examples/timers/posix"
	"github.com/quiesce-go/quiesce/examples/trace/tracer"
	"github.com/quiesce-go/quiesce/internal/cputime"
	"github.com/quiesce-go/quiesce/internal/lockprofile"
	"github.com/quiesce-go/quiesce/internal/tier"
	"github.com/quiesce-go/quiesce/rcu"
)

// inLock is the share of CPU time that went into locks: waiting for them, parking and waking.
const inLock = "lock-%"

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

// watchLocks adds to the samples of w what share of its time went into locks, in the first step and in
// every fifth, since a profile takes a while to end. All steps are longer than those of other rows, for there may
// be so many goroutines that it takes long until each had a CPU; those with a profile are longer still.
func watchLocks(w work) work {
	batch := calibrate(w)
	watched := w
	watched.each = nil
	steps := 0
	watched.once = func(d time.Duration) (s sample) {
		steps++
		if steps%5 != 1 {
			return step(w, batch, 4*d)
		}
		share, err := lockprofile.Share(func() { s = step(w, batch, 10*d) })
		if err == nil && !math.IsNaN(share) { // else there is somebody else's profile, or too little in it
			s.more = map[string]float64{inLock: share}
		}
		return s
	}
	return watched
}

// ---- semaphores

// semaphores is semop-multi: 256 threads and 128 semaphores made 5,048,409 calls a second with the
// array's lock held over the checks, and 9,105,213 with the checks in a read section.
func semaphores() []row {
	const threads, nsems = 256, 128
	var rows []row
	for _, cpus := range cpuCounts() {
		locked := impl{name: "locked", thread: 5048409. / 9105213, open: semCrowd(sysv.NewLocked, threads, nsems)}
		if cpus > 1 {
			locked.must, locked.goal = 1/1.8, 1/3.
		}
		rows = append(rows, row{name: fmt.Sprintf("Semop/goroutines=%d", threads), cpus: cpus, tier: tier.RSEQ, impls: []impl{
			{name: "rcu", open: semCrowd(sysv.New, threads, nsems)}, locked,
		}})
	}
	return rows
}

// semUsers is how many users the threads belong to. None of them is the creator of the array.
const semUsers = 16

// semPolicy is what Linux asks besides permissions, its security module: it too has its answers in a hash
// table.
func semPolicy() sysv.Security {
	type access struct {
		who, whose int
		alter      bool
	}
	policy := make(map[access]bool)
	for u := range semUsers + 1 {
		policy[access{1000 + u, 1000, true}] = true
		policy[access{1000 + u, 1000, false}] = true
	}
	return func(who sysv.Credentials, p sysv.Perm, alter bool) error {
		if !policy[access{who.UID, p.UID, alter}] {
			return sysv.EACCES
		}
		return nil
	}
}

// A semTable makes the table that a twin has.
type semTable func(*rcu.Domain, sysv.Limits, sysv.Security) *sysv.Table

// semCrowd has threads that each give and take, in turns, a semaphore of one array. They never wait for a
// value, only for the lock.
func semCrowd(table semTable, n, nsems int) func() work {
	return func() work {
		t := table(rcu.Default(), sysv.DefaultLimits, semPolicy())
		creator := t.NewOwner(sysv.Credentials{PID: 1, UID: 1000, GID: 100}).NewThread()
		id, err := creator.Get(sysv.Private, nsems, sysv.Create|0o660)
		if err != nil {
			panic(err)
		}
		all := make([]*sysv.Thread, n)
		for i := range all {
			all[i] = t.NewOwner(sysv.Credentials{PID: 2 + i, UID: 1001 + i%semUsers, GID: 100}).NewThread()
		}
		return watchLocks(work{
			goroutines: n,
			each: func(worker int) func(int) {
				give := []sysv.Op{{Num: worker % nsems, Delta: 1}}
				take := []sysv.Op{{Num: worker % nsems, Delta: -1}}
				return func(n int) { // which is even
					for range n / 2 {
						err := all[worker].Op(context.Background(), id, give)
						if err == nil {
							err = all[worker].Op(context.Background(), id, take)
						}
						if err != nil {
							panic(err)
						}
					}
				}
			},
			close: func() {
				if err := creator.Remove(id); err != nil {
					panic(err)
				}
				creator.Close()
				for _, thread := range all {
					thread.Close()
				}
			},
		})
	}
}

// semMixed is what a database does with semaphores: many arrays, operations on them, looks at them, and
// now and then one that goes and another that comes, for 100, 400 and 800 users. The thread had, of
// the system's time, 8.7, 21.9 and 84.4 % in the lock before, and 8.1, 19.9 and 77.7 % after.
func semMixed() []row {
	var rows []row
	for _, users := range []int{100, 400, 800} {
		rows = append(rows, row{name: fmt.Sprintf("SemMixed/goroutines=%d", users), cpus: mostCPUs(), tier: tier.RSEQ, impls: []impl{
			{name: "rcu", open: semDatabase(sysv.New, users)},
			{name: "locked", open: semDatabase(sysv.NewLocked, users)},
		}})
	}
	return rows
}

func semDatabase(table semTable, users int) func() work {
	const arrays, nsems = 64, 16
	return func() work {
		t := table(rcu.Default(), sysv.DefaultLimits, semPolicy())
		root := t.NewOwner(sysv.Credentials{PID: 1, UID: 1000, GID: 100})
		var ids [arrays]atomic.Uint64
		replace := func(th *sysv.Thread, k uint64) {
			// The old one goes first, as there may be only so many. Of two at once, one removes it.
			if old := ids[k].Load(); old != 0 && th.Remove(sysv.ID(old)) != nil {
				return
			}
			id, err := th.Get(sysv.Private, nsems, sysv.Create|0o660)
			if err != nil {
				panic(err)
			}
			ids[k].Store(uint64(id))
		}
		th := root.NewThread()
		for k := range uint64(arrays) {
			replace(th, k)
		}
		threads, roots := make([]*sysv.Thread, users), make([]*sysv.Thread, users)
		for i := range users {
			threads[i] = t.NewOwner(sysv.Credentials{PID: 2 + i, UID: 1001 + i%semUsers, GID: 100}).NewThread()
			roots[i] = root.NewThread()
		}
		// An array that was removed meanwhile, and one that has nothing to take any more, are all in a
		// day's work.
		see := func(err error) {
			if err != nil && !errors.Is(err, sysv.EIDRM) && !errors.Is(err, sysv.EINVAL) && !errors.Is(err, sysv.EAGAIN) {
				panic(err)
			}
		}
		return watchLocks(work{
			goroutines: users,
			each: func(worker int) func(int) {
				x := uint64(worker) * 0x9e3779b97f4a7c15
				num := worker % nsems
				give := []sysv.Op{{Num: num, Delta: 1}}
				take := []sysv.Op{{Num: num, Delta: -1, Flags: sysv.NoWait}}
				th := threads[worker]
				return func(n int) {
					for range n {
						x = x*lcgMul + lcgAdd
						id := sysv.ID(ids[x>>33%arrays].Load())
						switch what := x >> 48 % 1000; {
						case what < 800:
							see(th.Op(context.Background(), id, give))
							see(th.Op(context.Background(), id, take))
						case what < 900:
							_, err := th.Stat(id)
							see(err)
						case what < 960:
							_, err := th.GetVal(id, num)
							see(err)
						case what < 998:
							see(th.SetVal(id, num, 100))
						default:
							replace(roots[worker], x>>33%arrays)
						}
					}
				}
			},
			close: func() {
				for k := range ids {
					if err := th.Remove(sysv.ID(ids[k].Load())); err != nil {
						panic(err)
					}
				}
				for _, th := range append(append(threads, roots...), th) {
					th.Close()
				}
			},
		})
	}
}

// ---- namespaces

// namespaces is the teardown of 1000 of them: it took 0.826 s and 2.65 s of CPU with a grace period on each
// way out, and 0.667 s and 4.25 s when it was left to a work queue.
func namespaces() []row {
	elapsed := func(o exits) time.Duration { return o.elapsed }
	used := func(o exits) time.Duration { return o.cpu }
	impls := func(measure func(exits) time.Duration, thread float64) []impl {
		return []impl{
			{name: "deferred", open: namespaceCrowd(ns.Deferred, measure)},
			{name: "synchronize", must: 1 / 1.24, thread: thread, open: namespaceCrowd(ns.Synchronize, measure)},
			{name: "shared", own: true, open: namespaceCrowd(ns.Shared, measure)},
		}
	}
	rows := []row{{name: "NamespaceExit/measure=elapsed", cpus: mostCPUs(), tier: tier.RSEQ, impls: impls(elapsed, 0.667/0.826)}}
	if cputime.Used() > 0 {
		rows = append(rows, row{name: "NamespaceExit/measure=cpu", cpus: mostCPUs(), tier: tier.RSEQ, impls: impls(used, 4.25/2.65)})
	}
	return rows
}

// A mount is what walks look at, and nobody may any more once it is unmounted.
type mount struct{ gone atomic.Bool }

func (m *mount) Unmount() { m.gone.Store(true) }

// exits is what a crowd of children did.
type exits struct{ elapsed, cpu time.Duration }

// namespaceCrowd has 1000 children, each in a goroutine of its own, create a namespace, walk through it and
// exit. It is over when nothing is left.
func namespaceCrowd(s ns.Strategy, measure func(exits) time.Duration) func() work {
	const children = 1000
	return func() work {
		d := rcu.New()
		return work{close: closing(d), once: func(time.Duration) sample {
			t := ns.New(d, s, func(ns.ID) (ns.Mount, error) { return new(mount), nil })
			latency := make([]time.Duration, children)
			var ready, done sync.WaitGroup
			begin := make(chan struct{})
			ready.Add(children)
			for i := range children {
				done.Go(func() {
					task := t.NewTask()
					ready.Done()
					<-begin
					latency[i] = exit(t, task)
				})
			}
			ready.Wait()
			runtime.GC() // what the last crowd left is not this one's
			start, cpu := time.Now(), cputime.Used()
			close(begin)
			done.Wait()
			if err := t.Barrier(context.Background()); err != nil || t.Len() != 0 {
				panic(fmt.Sprintf("%d namespaces are left, %v", t.Len(), err))
			}
			o := exits{time.Since(start), cputime.Used() - cpu}
			return sample{ns: float64(max(measure(o), 1)) / children, n: children, more: percentiles(latency)}
		}}
	}
}

// exit is the life of a namespace, and returns how long its end takes the task.
func exit(t *ns.Table, task *ns.Task) time.Duration {
	id, err := task.Create()
	if err == nil {
		err = t.Walk(id, func(m ns.Mount) {
			if m.(*mount).gone.Load() {
				panic("a walk in what was unmounted")
			}
		})
	}
	start := time.Now()
	if err == nil {
		err = task.Exit(context.Background())
	}
	if err != nil {
		panic(err)
	}
	return time.Since(start)
}

// ---- traces

// traces are events as a program emits them. The rivals are a lock around a buffer, and what programs
// log with.
func traces() []row {
	var rows []row
	for _, cpus := range cpuCounts() {
		room := 64 * turn * cpus
		rows = append(rows, row{name: "TraceEmit", cpus: cpus, tier: tier.RSEQ, impls: []impl{
			{name: "tracer.Event", open: func() work {
				t := tracer.New(room)
				e := tracer.NewEvent[uint32](t, "n")
				return inTurns(cpus, func(n int) {
					for i := range n {
						e.Emit(uint32(i))
					}
				}, func() (n int) {
					for range t.Entries() {
						n++
					}
					return n
				})
			}},
			{name: "Mutex+buffer", open: func() work {
				b := &lockedBuffer{bytes: make([]byte, room)}
				return inTurns(cpus, func(n int) {
					var payload [4]byte
					for i := range n {
						binary.LittleEndian.PutUint32(payload[:], uint32(i))
						b.write(1, payload[:])
					}
				}, func() int { n := b.n; b.n, b.used = 0, 0; return n })
			}},
			{name: "log/slog", open: func() work {
				l := slog.New(slog.NewTextHandler(io.Discard, nil))
				return inTurns(cpus, func(n int) {
					for i := range n {
						l.Info("n", "n", i)
					}
				}, func() int { return cpus * turn })
			}},
		}})
	}
	return rows
}
