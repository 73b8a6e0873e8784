package seqlock_test

import (
	"fmt"
	"sync/atomic"

	"github.com/quiesce-go/quiesce/seqlock"
)

// A reading of a sensor, which is to be seen as a whole.
type reading struct {
	Celsius  float64
	Pressure float64
	Seconds  int64
}

func ExampleValue() {
	var latest seqlock.Value[reading]

	latest.Store(reading{Celsius: 21.5, Pressure: 1013.2, Seconds: 1}) // by one goroutine

	r := latest.Load() // by any number of others
	fmt.Println(r.Celsius, r.Pressure, r.Seconds)
	// Output: 21.5 1013.2 1
}

func ExampleValue_Update() {
	var sum seqlock.Value[struct{ n, total int }]
	for _, x := range []int{3, 5, 7} {
		sum.Update(func(s *struct{ n, total int }) {
			s.n++
			s.total += x
		})
	}
	s := sum.Load()
	fmt.Println(s.total / s.n)

	// What a function that panics has changed is forgotten.
	func() {
		defer func() { fmt.Println(recover()) }()
		sum.Update(func(s *struct{ n, total int }) {
			s.total = 0
			s.total /= s.total
		})
	}()
	fmt.Println(sum.Load().total)
	// Output:
	// 5
	// runtime error: integer divide by zero
	// 15
}

func ExampleValue_Version() {
	var limits seqlock.Value[[2]int]
	limits.Store([2]int{10, 20})

	// What is computed from a value stays good until the version changes. The
	// version has to be taken first.
	version := limits.Version()
	l := limits.Load()
	span := l[1] - l[0]

	fmt.Println(span, limits.Version() == version)
	limits.Store([2]int{10, 50})
	fmt.Println(span, limits.Version() == version)
	// Output:
	// 10 true
	// 10 false
}

func ExampleValue_TryLoad() {
	var v seqlock.Value[[2]int]
	v.Store([2]int{1, 2})
	if x, ok := v.TryLoad(); ok {
		fmt.Println(x)
	} else {
		fmt.Println("somebody is writing; do without")
	}
	// Output: [1 2]
}

func ExampleValue_LoadTo() {
	var table seqlock.Value[[100]int32]
	table.Update(func(t *[100]int32) { t[42] = 7 })

	var mine [100]int32 // used again for each Load
	table.LoadTo(&mine)
	fmt.Println(mine[42])
	// Output: 7
}

func ExampleValue_StoreFrom() {
	var table seqlock.Value[[100]int32]
	var mine [100]int32 // the only writer's own
	for i := range int32(3) {
		mine[42] += i
		table.StoreFrom(&mine)
	}
	fmt.Println(table.Load()[42])
	// Output: 3
}

func ExampleValue_pointers() {
	type entry struct {
		ID    int
		Names [2]string
	}
	defer func() { fmt.Println(recover()) }()
	var v seqlock.Value[entry]
	v.Store(entry{ID: 1})
	// Output:
	// seqlock: a Value cannot hold a seqlock_test.entry, as T.Names[0] is or holds a pointer: string
}

func ExampleLatch() {
	// How to turn ticks into nanoseconds, for whoever must not wait for the one
	// that adjusts it: a profiler, a logger of crashes.
	type scale struct{ Ticks, Nanos, PerTick int64 }
	var clock seqlock.Latch[scale]
	clock.Store(scale{Ticks: 1000, Nanos: 0, PerTick: 3})

	now := func(ticks int64) int64 {
		c := clock.Load()
		return c.Nanos + (ticks-c.Ticks)*c.PerTick
	}
	clock.Update(func(c *scale) {
		// Here the one that adjusts it may be stopped for as long as it takes.
		fmt.Println(now(1010))
		c.Ticks, c.Nanos, c.PerTick = 1010, 30, 4
	})
	fmt.Println(now(1020))
	// Output:
	// 30
	// 70
}

func ExampleCount() {
	var (
		c    seqlock.Count
		x, y atomic.Int64 // always opposite
	)
	move := func(to int64) { // by one goroutine at a time
		c.WriteBegin()
		x.Store(to)
		y.Store(-to)
		c.WriteEnd()
	}
	where := func() (int64, int64) {
		for {
			s := c.Begin()
			a, b := x.Load(), y.Load()
			if !c.Retry(s) {
				return a, b
			}
		}
	}
	move(5)
	fmt.Println(where())
	// Output: 5 -5
}

func ExampleLock() {
	var (
		l    seqlock.Lock
		x, y atomic.Int64 // always opposite
	)
	move := func(by int64) {
		l.Lock()
		defer l.Unlock()
		x.Store(x.Load() + by)
		y.Store(y.Load() - by)
	}
	where := func() (a, b int64) {
		l.Read(func() { a, b = x.Load(), y.Load() })
		return a, b
	}
	move(2)
	move(3)
	fmt.Println(where())
	// Output: 5 -5
}
