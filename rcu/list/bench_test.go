package list_test

import (
	stdlist "container/list"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/quiesce-go/quiesce/rcu"
	"github.com/quiesce-go/quiesce/rcu/list"
)

// BenchmarkWalk is a reader that visits all objects: handlers of an event, sessions that are told something.
// The rivals are a list behind a reader lock, and a slice that updaters copy, which needs no section as long as
// nothing is freed.
func BenchmarkWalk(b *testing.B) {
	for _, n := range []int{4, 64} {
		objects := make([]*int, n)
		for i := range objects {
			objects[i] = &i
		}
		run := func(impl string, reader func() (walk func() int)) {
			b.Run(fmt.Sprintf("objects=%d/impl=%s", n, impl), func(b *testing.B) {
				b.ReportAllocs()
				b.RunParallel(func(pb *testing.PB) {
					walk := reader()
					for pb.Next() {
						if got := walk(); got != n*(n-1)/2 {
							b.Error(got)
						}
					}
				})
			})
		}
		d := rcu.New()
		var l list.List[int]
		for _, v := range objects {
			l.PushBack(v)
		}
		run("rcu-guard", func() func() int {
			return func() int {
				defer d.ReadLock().Unlock()
				return sum(&l)
			}
		})
		run("rcu-reader", func() func() int {
			r := d.NewReader()
			return func() int {
				r.Lock()
				defer r.Unlock()
				return sum(&l)
			}
		})
		var mu sync.RWMutex
		std := stdlist.New()
		for _, v := range objects {
			std.PushBack(v)
		}
		run("rwmutex", func() func() int {
			return func() (s int) {
				mu.RLock()
				defer mu.RUnlock()
				for e := std.Front(); e != nil; e = e.Next() {
					s += *e.Value.(*int)
				}
				return s
			}
		})
		var slice atomic.Pointer[[]*int]
		slice.Store(&objects)
		run("slice", func() func() int {
			return func() (s int) {
				for _, v := range *slice.Load() {
					s += *v
				}
				return s
			}
		})
	}
}

// BenchmarkUpdate is a writer that inserts and removes.
func BenchmarkUpdate(b *testing.B) {
	v := new(int)
	b.Run("impl=rcu", func(b *testing.B) {
		b.ReportAllocs()
		var l list.List[int]
		for b.Loop() {
			l.Remove(l.PushBack(v))
		}
	})
	b.Run("impl=container-list", func(b *testing.B) {
		b.ReportAllocs()
		l := stdlist.New()
		for b.Loop() {
			l.Remove(l.PushBack(v))
		}
	})
}
