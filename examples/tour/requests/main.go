// Command requests counts requests by kind, in counters that package expvar knows and that cost a
// request one plain instruction. See examples/expvar for a server that has them on /debug/vars.
package main

import (
	"expvar"
	"fmt"
	"sync"

	"github.com/quiesce-go/quiesce/percpu"
)

// byKind is a map of counters as expvar shows them; its keys are fixed, so that counting does
// not look them up.
var (
	byKind             = expvar.NewMap("requests")
	reads, writes, bad percpu.Counter
)

func init() {
	byKind.Set("read", &reads)
	byKind.Set("write", &writes)
	byKind.Set("bad", &bad)
}

// serve answers requests; every tenth is a write, and every hundredth is bad.
func serve(n int) {
	for i := range n {
		switch {
		case i%100 == 99:
			bad.Inc()
		case i%10 == 9:
			writes.Inc()
		default:
			reads.Inc()
		}
	}
}

func main() {
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() { serve(1000) })
	}
	wg.Wait()
	fmt.Println(byKind)
}
