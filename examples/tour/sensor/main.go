// Command sensor has the last reading of a sensor in a seqlock: one goroutine stores it, any number
// load it without a lock, and none ever sees half of one reading and half of another.
package main

import (
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/quiesce-go/quiesce/seqlock"
)

// A reading has no pointers, as a seqlock wants it. Its sum is that of the axes.
type reading struct {
	seq  int64
	axes [6]int64
	sum  int64
}

func read(seq int64) reading {
	r := reading{seq: seq}
	for i := range r.axes {
		r.axes[i] = seq * int64(i+1)
		r.sum += r.axes[i]
	}
	return r
}

// run stores n readings while others load them, and returns how many of those were torn, and the last.
func run(n int64) (torn int64, last reading) {
	var (
		v    seqlock.Value[reading]
		wg   sync.WaitGroup
		bad  atomic.Int64
		done atomic.Bool
	)
	for range 3 {
		wg.Go(func() {
			for i := 0; i < 100 || !done.Load(); i++ {
				r := v.Load()
				for _, a := range r.axes {
					r.sum -= a
				}
				if r.sum != 0 {
					bad.Add(1)
				}
			}
		})
	}
	for seq := range n {
		v.Store(read(seq + 1))
	}
	done.Store(true)
	wg.Wait()
	return bad.Load(), v.Load()
}

func main() {
	torn, last := run(10_000)
	fmt.Println("torn readings:", torn, "last:", last.seq, last.axes)
}
