package main

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quiesce-go/quiesce/examples/namespace/ns"
	"github.com/quiesce-go/quiesce/internal/cputime"
	"github.com/quiesce-go/quiesce/rcu"
)

// A tree is the mount of a namespace: something that walks look at, and that is not to be there any more
// once nobody does.
type tree struct{ files [4]atomic.Int64 }

func mount(ns.ID) (ns.Mount, error) { return new(tree), nil }

func (t *tree) Unmount() {
	for i := range t.files {
		t.files[i].Store(-1)
	}
}

// look is what a walk does with a tree. It panics if that was unmounted.
func look(m ns.Mount) {
	for i := range m.(*tree).files {
		if m.(*tree).files[i].Load() < 0 {
			panic("a walk in a tree that was unmounted")
		}
	}
}

// What a crowd of children did.
type outcome struct {
	exits   []time.Duration // how long each exit took its child
	elapsed time.Duration   // from the start until nothing was left
	cpu     time.Duration   // of the whole program in that time; 0 if this system does not tell
}

// crowd has children, each in a goroutine of its own, make exits in all: create a namespace, put two objects
// into it, walk through it, and exit. Nobody begins before all are there. It returns when every namespace
// has been torn down.
func crowd(s ns.Strategy, children, exits int) outcome {
	d := rcu.New()
	t := ns.New(d, s, mount)
	var (
		next  atomic.Int64
		out   = outcome{exits: make([]time.Duration, exits)}
		begin = make(chan struct{})
		ready sync.WaitGroup
		wg    sync.WaitGroup
	)
	ready.Add(children)
	for range children {
		wg.Go(func() {
			k := t.NewTask()
			ready.Done()
			<-begin
			for i := next.Add(1) - 1; i < int64(exits); i = next.Add(1) - 1 {
				out.exits[i] = child(t, k)
			}
		})
	}
	ready.Wait()
	runtime.GC() // what others have left is not this crowd's
	start, cpu := time.Now(), cputime.Used()
	close(begin)
	wg.Wait()
	check(t.Barrier(context.Background()))
	out.elapsed, out.cpu = time.Since(start), cputime.Used()-cpu
	if n := t.Len(); n != 0 {
		panic("namespaces are left after Barrier")
	}
	check(d.Close(context.Background()))
	return out
}

// child is one namespace's life. It returns how long the exit took.
func child(t *ns.Table, k *ns.Task) time.Duration {
	id, err := k.Create()
	check(err)
	for range 2 {
		_, err := k.Add(id, nil)
		check(err)
	}
	check(t.Walk(id, look))
	start := time.Now()
	check(k.Exit(context.Background()))
	return time.Since(start)
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}
