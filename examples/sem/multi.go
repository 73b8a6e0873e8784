package main

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quiesce-go/quiesce/examples/sem/sysv"
	"github.com/quiesce-go/quiesce/rcu"
)

// The twins, in the order of the table.
const (
	before = iota // the array's lock from lookup to end
	after         // lookup and checks in a read section, the lock for the operation
	twins
)

var twinNames = [twins]string{"locked", "rcu"}

func newTable(twin int) *sysv.Table {
	if twin == before {
		return sysv.NewLocked(rcu.Default(), sysv.DefaultLimits, newPolicy().check)
	}
	return sysv.New(rcu.Default(), sysv.DefaultLimits, newPolicy().check)
}

// batch is the number of calls between two looks at whether that is enough. It is even, so that a
// thread takes what it has given.
const batch = 256

// A crowd is what the kernel developers' semop-multi is: threads that each give and take, in turns, a
// semaphore of one array, again and again. There are more threads than semaphores. They never wait
// for a value, only for the lock.
type crowd struct {
	table   *sysv.Table
	id      sysv.ID
	creator *sysv.Thread
	threads []*sysv.Thread
	nsems   int
}

func newCrowd(twin, threads, nsems int) *crowd {
	c := &crowd{table: newTable(twin), nsems: nsems}
	// The creator, and others of his group: so the permissions are looked at in earnest.
	c.creator = c.table.NewOwner(sysv.Credentials{PID: 1, UID: 1000, GID: 100}).NewThread()
	var err error
	if c.id, err = c.creator.Get(sysv.Private, nsems, sysv.Create|0o660); err != nil {
		panic(err)
	}
	for i := range threads {
		o := c.table.NewOwner(sysv.Credentials{PID: 2 + i, UID: 1001 + i%labels, GID: 100})
		c.threads = append(c.threads, o.NewThread())
	}
	return c
}

// call has thread i make n calls.
func (c *crowd) call(i, n int) {
	ctx := context.Background()
	give := []sysv.Op{{Num: i % c.nsems, Delta: 1}}
	take := []sysv.Op{{Num: i % c.nsems, Delta: -1}}
	for range n / 2 {
		if err := c.threads[i].Op(ctx, c.id, give); err != nil {
			panic(err)
		}
		if err := c.threads[i].Op(ctx, c.id, take); err != nil {
			panic(err)
		}
	}
}

// start has each thread, in a goroutine of its own, make as many calls at a time as claim says, until
// that is 0. Nobody begins before the function that it returns is called, which returns when all have
// ended.
func (c *crowd) start(claim func() int) (run func()) {
	var wg sync.WaitGroup
	begin := make(chan struct{})
	for i := range c.threads {
		wg.Go(func() {
			<-begin
			for n := claim(); n > 0; n = claim() {
				c.call(i, n)
			}
		})
	}
	return func() {
		close(begin)
		wg.Wait()
	}
}

// finish ends what newCrowd began. It panics if the semaphores are not as they were.
func (c *crowd) finish() {
	values, err := c.creator.GetAll(c.id)
	for _, v := range values {
		if v != 0 {
			panic("sem: a semaphore was given or taken once too often")
		}
	}
	if err == nil {
		err = c.creator.Remove(c.id)
	}
	if err != nil {
		panic(err)
	}
	c.creator.Close()
	for _, th := range c.threads {
		th.Close()
	}
}

// throughput has n threads call for about d, and returns how many calls they made in a second.
func throughput(twin, n, nsems int, d time.Duration) float64 {
	c := newCrowd(twin, n, nsems)
	defer c.finish()
	var made atomic.Int64
	var stop atomic.Bool
	run := c.start(func() int {
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

// labels is how many kinds of users there are to a policy.
const labels = 16

// A policy is what Linux asks besides permissions, its security module: who may do what to whose
// things. Like that, it has its answers in a hash table.
type policy struct {
	access map[access]bool
}

type access struct {
	who, whose int // UIDs
	alter      bool
}

func newPolicy() *policy {
	p := &policy{make(map[access]bool)}
	for i := range labels {
		for k := range labels {
			p.access[access{1000 + i, 1000 + k, false}] = true
			p.access[access{1000 + i, 1000 + k, true}] = true
		}
	}
	for i := range labels + 1 {
		p.access[access{1000 + i, 1000, true}] = true
		p.access[access{1000 + i, 1000, false}] = true
	}
	return p
}

func (p *policy) check(who sysv.Credentials, perm sysv.Perm, alter bool) error {
	if !p.access[access{who.UID, perm.UID, alter}] {
		return sysv.EACCES
	}
	return nil
}
