package rcu_test

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/quiesce-go/quiesce/percpu"
	"github.com/quiesce-go/quiesce/rcu"
)

// These are the snippets of docs/rcu.md.

// Publish: what a reader finds is complete, for it was made before it was stored.
func Example_publish() {
	type limits struct{ soft, hard int }
	var current rcu.Pointer[limits]
	current.Store(&limits{soft: 10, hard: 20})

	d := rcu.New()
	g := d.ReadLock()
	l := current.Load() // once: another Load may give a newer one
	fmt.Println(l.soft, l.hard)
	g.Unlock()
	// Output: 10 20
}

// Replace: change a copy, put it in the place of the old one, and let that one go when nobody can still have
// it. Updaters exclude each other.
func Example_replace() {
	type table struct{ routes map[string]string }
	var (
		d       = rcu.New()
		current rcu.Pointer[table]
		mu      sync.Mutex // of updaters
	)
	current.Store(&table{routes: map[string]string{"a": "1"}})

	add := func(name, to string) {
		mu.Lock()
		defer mu.Unlock()
		next := &table{routes: map[string]string{name: to}}
		for k, v := range current.Load().routes {
			next.routes[k] = v
		}
		current.Replace(d, next, func(old *table) { fmt.Println("let go of", len(old.routes)) })
	}
	add("b", "2")

	d.Read(func() { fmt.Println("now", len(current.Load().routes)) })
	d.Close(context.Background())
	// Unordered output:
	// now 2
	// let go of 1
}

// A reference outlives the section in which it was taken. The object goes back to its pool a grace period after
// the last reference: until then a reader may be about to ask for one, in vain.
func Example_reference() {
	type conn struct {
		refs *percpu.Ref
		name string
	}
	var (
		d       = rcu.New()
		current rcu.Pointer[conn]
	)
	open := func(name string) *conn {
		c := &conn{name: name}
		c.refs = percpu.NewRef(func() {
			rcu.Retire(d, c, func(c *conn) { fmt.Println("recycle", c.name) })
		})
		return c
	}
	current.Store(open("one"))

	// A reader that wants to keep what it finds.
	g := d.ReadLock()
	c := current.Load()
	mine := c.refs.TryGet()
	g.Unlock()

	// An updater.
	old := current.Swap(open("two"))
	old.refs.Kill()

	if mine {
		fmt.Println("use", c.name)
		c.refs.Put()
	}
	d.Barrier(context.Background())
	// Output:
	// use one
	// recycle one
}

// Teardown: first nobody new gets in, then those inside leave, then the callbacks run.
func Example_teardown() {
	type service struct{ name string }
	var (
		d       = rcu.New()
		current rcu.Pointer[service]
	)
	current.Store(&service{"s"})

	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	old := current.Swap(nil)                   // nobody finds it from now on,
	if err := d.Synchronize(ctx); err != nil { // and who had found it has left
		fmt.Println("somebody stays:", err)
		return
	}
	fmt.Println("stop", old.name)
	fmt.Println(d.Close(ctx)) // callbacks have run, no goroutine is left
	// Output:
	// stop s
	// <nil>
}

// What has to block after a grace period gets a goroutine of its own.
func ExampleDomain_Go_block() {
	d := rcu.New()
	stopped := make(chan string)
	d.Go(func() { stopped <- "flushed and closed" })
	fmt.Println(<-stopped)
	// Output: flushed and closed
}
