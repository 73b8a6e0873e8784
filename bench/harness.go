package main

import (
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quiesce-go/quiesce/internal/tier"
)

// A group is rows that have something in common: a title, and tables to look things up in, which are
// dropped when the group is done.
type group struct {
	title string
	note  string // what is measured, for the reader of the table
	rows  func() []row
}

// A row is one comparison: the same work by several implementations, measured in turns. The
// first one is ours, and the others are what it is compared with.
type row struct {
	name  string    // key=value parts after the first, as benchstat wants it, without impl and CPUs
	cpus  int       // GOMAXPROCS
	tier  tier.Tier // or the best one below it that works
	impls []impl
}

// An impl is one way to do a row's work. What our way has to be beside this one is stated with this
// one, as ratios of the times.
type impl struct {
	name string
	must float64 // 0 if nothing was asked for
	goal float64
	// thread is the ratio that the kernel developers reported for the same change, on other machines.
	thread float64
	plus   float64 // the must is so many nanoseconds more than this one takes
	own    bool    // it is another of ours, so that being slower is no loss

	open func() work
}

// work is what open prepared. Either each or once is set.
type work struct {
	each       func(worker int) func(n int) // returns what does n operations; called in the worker's goroutine
	goroutines int                          // that have a worker each; 0 is one for each CPU
	once       func(d time.Duration) sample // measures in its own way, for about d
	close      func()
}

// A sample is what one step gave.
type sample struct {
	ns     float64 // per operation, over all CPUs
	allocs float64 // per operation
	n      int     // operations
	// more are other figures of the step, by unit; in the table they are not compared.
	more map[string]float64
}

// ops makes a work of a function that needs nothing of its own for a worker.
func ops(f func(n int)) func() work {
	return func() work { return work{each: func(int) func(int) { return f }} }
}

// A result is a row with the samples of its rounds, by impl.
type result struct {
	group string
	row
	samples [][]sample
}

// settings is what the flags say about the measurement.
type settings struct {
	rounds int
	step   time.Duration
	quick  bool
}

// run measures all rows of all groups and tells progress how far it is.
func (s settings) run(groups []group, progress io.Writer) (all []result) {
	procs := runtime.GOMAXPROCS(0)
	defer runtime.GOMAXPROCS(procs)
	began := time.Now()
	for i, g := range groups {
		for j, r := range g.rows() {
			if s.quick && strings.Contains(r.name, "n=1M") {
				continue // filling the tables takes longer than all the rest
			}
			fmt.Fprintf(progress, "\r%-100s", fmt.Sprintf("%.0f s, group %d of %d (%s), row %d: %s on %d", time.Since(began).Seconds(), i+1, len(groups), g.title, j+1, r.name, r.cpus))
			runtime.GOMAXPROCS(r.cpus)
			done := result{g.title, r, s.measure(r)}
			for i := range done.impls {
				done.impls[i].open = nil // which may have tables of a million ids
			}
			all = append(all, done)
			runtime.GOMAXPROCS(procs)
		}
	}
	fmt.Fprintf(progress, "\r%-100s\n", fmt.Sprintf("%d rows in %.0f s", len(all), time.Since(began).Seconds()))
	return all
}

// measure makes the rounds of a row. Each round begins with another impl, so that none is always
// the one that follows the slowest.
func (s settings) measure(r row) [][]sample {
	_, undo := tier.Switch(r.tier)
	defer undo()
	open := make([]work, len(r.impls))
	batch := make([]int, len(r.impls))
	for i, im := range r.impls {
		open[i] = im.open()
		if open[i].close != nil {
			defer open[i].close()
		}
		if open[i].goroutines == 0 {
			open[i].goroutines = r.cpus
		}
		if open[i].once == nil {
			batch[i] = calibrate(open[i])
		}
	}
	runtime.GC() // not while it is measured
	samples := make([][]sample, len(r.impls))
	for round := range s.rounds {
		for k := range r.impls {
			i := (k + round) % len(r.impls)
			if open[i].once != nil {
				samples[i] = append(samples[i], open[i].once(s.step))
			} else {
				samples[i] = append(samples[i], step(open[i], batch[i], s.step))
			}
		}
	}
	return samples
}

// calibrate returns how many operations take so long that reading the clock after them does not
// matter. It fills the caches first: one batch that misses them all says nothing about the next.
func calibrate(w work) (n int) {
	const enough = 20 * time.Microsecond
	for n = 16; n < 1<<20; n *= 2 {
		step(w, n, time.Millisecond/2)
		if s := step(w, n, time.Millisecond/2); float64(n)*s.ns*float64(min(w.goroutines, runtime.GOMAXPROCS(0))) >= float64(enough) {
			break
		}
	}
	return n
}

// step has the workers do batches for about d, and counts them.
func step(w work, batch int, d time.Duration) sample {
	var (
		wg    sync.WaitGroup
		total atomic.Int64
		ready = make(chan struct{}, w.goroutines)
		begin = make(chan time.Time)
	)
	for i := range w.goroutines {
		wg.Go(func() {
			f := w.each(i)
			ready <- struct{}{}
			end := (<-begin).Add(d)
			n := batch
			for f(batch); time.Now().Before(end); f(batch) {
				n += batch
			}
			total.Add(int64(n))
		})
	}
	for range w.goroutines {
		<-ready
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	t := time.Now()
	for range w.goroutines {
		begin <- t
	}
	wg.Wait()
	elapsed := time.Since(t)
	runtime.ReadMemStats(&after)
	n := float64(total.Load())
	return sample{
		ns:     float64(elapsed) / n,
		allocs: float64(after.Mallocs-before.Mallocs) / n,
		n:      int(n),
	}
}

// A spread is the median of some numbers, with their least and their greatest.
type spread struct{ median, least, most float64 }

func spreadOf(v []float64) spread {
	v = slices.Sorted(slices.Values(v))
	n := len(v)
	return spread{(v[(n-1)/2] + v[n/2]) / 2, v[0], v[n-1]}
}

// times is the spread of an impl's nanoseconds.
func (r result) times(i int) spread {
	var v []float64
	for _, s := range r.samples[i] {
		v = append(v, s.ns)
	}
	return spreadOf(v)
}

// ratio is the spread of our time by that of impl i, of the same round each.
func (r result) ratio(i int) spread {
	var v []float64
	for k, s := range r.samples[i] {
		v = append(v, r.samples[0][k].ns/s.ns)
	}
	return spreadOf(v)
}

// cpuCounts are the CPUs that rows are measured on: one, and all.
func cpuCounts() []int {
	if n := runtime.NumCPU(); n > 1 {
		return []int{1, n}
	}
	return []int{1}
}
