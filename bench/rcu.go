package main

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/puzpuzpuz/xsync/v4"

	"github.com/quiesce-go/quiesce/internal/tier"
	"github.com/quiesce-go/quiesce/rcu"
)

// closing closes d, for work.close.
func closing(d *rcu.Domain) func() {
	return func() {
		if err := d.Close(context.Background()); err != nil {
			panic(err)
		}
	}
}

type payload struct {
	value int
	_     [120]byte
}

// sections are read-side sections around the load of a pointer and of what it points to.
func sections() []row {
	object := &payload{value: 1}
	var rows []row
	for _, cpus := range cpuCounts() {
		peers := func(rbMust, rwMust float64) []impl {
			return []impl{
				{name: "atomic.Pointer", open: func() work {
					var p atomic.Pointer[payload]
					p.Store(object)
					return work{each: func(int) func(int) {
						return func(n int) {
							s := 0
							for range n {
								s += p.Load().value
							}
							keep(s)
						}
					}}
				}},
				{name: "sync.RWMutex", must: rwMust, open: func() work {
					var mu sync.RWMutex
					p := object
					return work{each: func(int) func(int) {
						return func(n int) {
							s := 0
							for range n {
								mu.RLock()
								s += p.value
								mu.RUnlock()
							}
							keep(s)
						}
					}}
				}},
				{name: "xsync.RBMutex", must: rbMust, open: func() work {
					mu := xsync.NewRBMutex()
					p := object
					return work{each: func(int) func(int) {
						return func(n int) {
							s := 0
							for range n {
								token := mu.RLock()
								s += p.value
								mu.RUnlock(token)
							}
							keep(s)
						}
					}}
				}},
			}
		}
		reader := impl{name: "rcu.Reader", open: func() work {
			d := rcu.New()
			var p rcu.Pointer[payload]
			p.Store(object)
			return work{each: func(int) func(int) {
				r := d.NewReader()
				return func(n int) {
					s := 0
					for range n {
						r.Lock()
						s += p.Load().value
						r.Unlock()
					}
					keep(s)
				}
			}, close: closing(d)}
		}}
		guard := impl{name: "rcu.Guard", open: func() work {
			d := rcu.New()
			var p rcu.Pointer[payload]
			p.Store(object)
			return work{each: func(int) func(int) {
				return func(n int) {
					s := 0
					for range n {
						g := d.ReadLock()
						s += p.Load().value
						g.Unlock()
					}
					keep(s)
				}
			}, close: closing(d)}
		}}
		rows = append(rows,
			row{name: "Section/kind=reader", cpus: cpus, tier: tier.RSEQ, impls: append([]impl{reader}, peers(0, 0)...)},
			row{name: "Section/kind=guard", cpus: cpus, tier: tier.RSEQ, impls: append([]impl{guard}, peers(0.3, pick(cpus, 1, 0.25))...)})
	}
	return rows
}

// gracePeriods are waits for all readers, with none, one and as many as there are CPUs in sections all
// the time. The rival is what a lock makes an updater wait.
func gracePeriods() []row {
	var rows []row
	all := slices.Max(cpuCounts())
	for _, readers := range slices.Compact([]int{0, 1, all}) {
		rows = append(rows, row{name: fmt.Sprintf("Synchronize/readers=%d", readers), cpus: all, tier: tier.RSEQ, impls: []impl{
			{name: "rcu.Domain", open: func() work {
				d := rcu.New()
				return work{once: latencies(func() {
					if err := d.Synchronize(context.Background()); err != nil {
						panic(err)
					}
				}, readers, func() func() {
					r := d.NewReader()
					return func() {
						for range 64 {
							r.Lock()
							r.Unlock()
						}
					}
				}), close: closing(d)}
			}},
			{name: "sync.RWMutex.Lock", open: func() work {
				var mu sync.RWMutex
				return work{once: latencies(func() {
					mu.Lock()
					mu.Unlock()
				}, readers, func() func() {
					return func() {
						for range 64 {
							mu.RLock()
							mu.RUnlock()
						}
					}
				})}
			}},
		}})
	}
	return rows
}

// busy runs what body returns again and again in n goroutines, until stop is called.
func busy(n int, body func() func()) (stop func()) {
	var (
		done atomic.Bool
		wg   sync.WaitGroup
	)
	for range n {
		wg.Go(func() {
			f := body()
			for !done.Load() {
				f()
			}
		})
	}
	return func() {
		done.Store(true)
		wg.Wait()
	}
}

// latencies calls f for about d, beside n goroutines with what body returns, and reports the mean time
// and some percentiles.
func latencies(f func(), n int, body func() func()) func(d time.Duration) sample {
	return func(d time.Duration) sample {
		defer busy(n, body)()
		var all []time.Duration
		began := time.Now()
		for len(all) == 0 || time.Since(began) < d {
			t := time.Now()
			f()
			all = append(all, time.Since(t))
		}
		took := time.Since(began)
		return sample{ns: float64(took) / float64(len(all)), n: len(all), more: percentiles(all)}
	}
}

// percentileNames are the units of what percentiles returns, the least first.
var percentileNames = []string{"p50-ns", "p90-ns", "p99-ns", "max-ns"}

func percentiles(all []time.Duration) map[string]float64 {
	slices.Sort(all)
	m := make(map[string]float64)
	for i, per := range []int{50, 90, 99, 100} {
		m[percentileNames[i]] = float64(all[(len(all)-1)*per/100])
	}
	return m
}

// callbacks are queued and run, from one goroutine: what the updater of a table of many objects
// does. The rival is the only one that Go has, which waits for the collector.
func callbacks() []row {
	type object struct {
		head rcu.Head
		_    [64]byte
	}
	const ring = 1 << 14
	head := impl{name: "CallHead", open: func() work {
		d := rcu.New()
		objects := make([]object, ring)
		var ran atomic.Uint64
		queued := uint64(0)
		fn := func(*rcu.Head) { ran.Store(ran.Load() + 1) }
		return work{goroutines: 1, each: func(int) func(int) {
			return func(n int) {
				for range n {
					// Half the ring, since those of one batch may run in another order.
					for queued-ran.Load() >= ring/2 {
						time.Sleep(20 * time.Microsecond)
					}
					d.CallHead(&objects[queued%ring].head, fn)
					queued++
				}
			}
		}, close: closing(d)}
	}}
	call := impl{name: "Call", own: true, open: func() work {
		d := rcu.New()
		var ran atomic.Uint64
		queued := uint64(0)
		fn := func() { ran.Store(ran.Load() + 1) }
		return work{goroutines: 1, each: func(int) func(int) {
			return func(n int) {
				for range n {
					for queued-ran.Load() >= ring/2 {
						time.Sleep(20 * time.Microsecond)
					}
					d.Call(fn)
					queued++
				}
			}
		}, close: closing(d)}
	}}
	channel := impl{name: "channel+goroutine", open: func() work { // no grace period: the hand-over alone
		c := make(chan func(), ring)
		done := make(chan struct{})
		go func() {
			defer close(done)
			for f := range c {
				f()
			}
		}()
		var ran atomic.Uint64
		fn := func() { ran.Store(ran.Load() + 1) }
		return work{goroutines: 1, each: func(int) func(int) {
			return func(n int) {
				for range n {
					c <- fn
				}
			}
		}, close: func() { close(c); <-done }}
	}}
	return []row{{name: "Callback", cpus: 1, tier: tier.RSEQ, impls: []impl{head, call, channel}}}
}
