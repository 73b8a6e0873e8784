package linearizability

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
)

var runs = flag.Int("runs", 1000, "how many histories of each kind are made and checked")

const clients = 4

// A client makes calls one after the other, each through call.
type client struct {
	id    int
	rng   *rand.Rand
	clock *atomic.Int64
	ops   []porcupine.Operation
}

// call makes a call and writes it down: what is asked, and what do gives.
func (c *client) call(input any, do func() any) any {
	c.maybeYield()
	o := porcupine.Operation{ClientId: c.id, Input: input, Call: c.clock.Add(1)}
	c.maybeYield()
	o.Output = do()
	c.maybeYield()
	o.Return = c.clock.Add(1)
	c.ops = append(c.ops, o)
	return o.Output
}

// maybeYield lets others run now and then, so that calls overlap also on one CPU.
func (c *client) maybeYield() {
	if c.rng.IntN(4) == 0 {
		runtime.Gosched()
	}
}

// check has a number of histories made and checked. Each is what the clients write down while they
// do what new returns.
func check(t *testing.T, model porcupine.Model, new func() func(c *client)) {
	seed := rand.Uint64()
	for _, procs := range []int{1, 2, 4} {
		t.Run(fmt.Sprintf("procs=%d", procs), func(t *testing.T) {
			defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(procs))
			histories, beside := (*runs+2)/3, 0
			for run := range histories {
				history := record(seed+uint64(run), new())
				if !verdict(t, model, history) {
					t.Fatalf("seed %d: not linearizable:\n%s", seed+uint64(run), describe(model, history))
				}
				beside += overlaps(history)
			}
			t.Logf("%d histories, in which %d calls began before another had ended", histories, beside)
			if beside < histories/10 { // they would show nothing
				t.Errorf("the calls of %d histories are one after the other, but for %d", histories, beside)
			}
		})
	}
}

// record has the clients work beside each other, and returns what they wrote down.
func record(seed uint64, work func(c *client)) (history []porcupine.Operation) {
	var clock atomic.Int64
	var wg sync.WaitGroup
	start := make(chan struct{})
	all := make([]*client, clients)
	for i := range all {
		c := &client{id: i, rng: rand.New(rand.NewPCG(seed, uint64(i))), clock: &clock}
		all[i] = c
		wg.Go(func() {
			<-start
			work(c)
		})
	}
	close(start)
	wg.Wait()
	for _, c := range all {
		history = append(history, c.ops...)
	}
	return history
}

// overlaps returns how many of the calls began before one had ended that began earlier.
func overlaps(history []porcupine.Operation) (n int) {
	history = slices.Clone(history)
	slices.SortFunc(history, func(a, b porcupine.Operation) int { return int(a.Call - b.Call) })
	last := int64(0)
	for _, o := range history {
		if o.Call < last {
			n++
		}
		last = max(last, o.Return)
	}
	return n
}

// verdict reports whether history is linearizable. That a search finds no end fails the test.
func verdict(t *testing.T, model porcupine.Model, history []porcupine.Operation) bool {
	t.Helper()
	result := porcupine.CheckOperationsTimeout(model, history, 2*time.Minute)
	if result == porcupine.Unknown {
		t.Fatal("porcupine found no answer in two minutes")
	}
	return result == porcupine.Ok
}

func describe(model porcupine.Model, history []porcupine.Operation) string {
	history = slices.Clone(history)
	slices.SortFunc(history, func(a, b porcupine.Operation) int { return int(a.Call - b.Call) })
	var b strings.Builder
	for _, o := range history {
		fmt.Fprintf(&b, "%d: [%d %d] %+v = %+v\n", o.ClientId, o.Call, o.Return, o.Input, o.Output)
	}
	return b.String()
}

// pick returns one of ops.
func pick(rng *rand.Rand, ops ...string) string { return ops[rng.IntN(len(ops))] }

// refuted fails the test if one of the histories, of calls that do not overlap, is accepted without
// its last call being so, or with it.
func refuted(t *testing.T, model porcupine.Model, histories ...[][2]any) {
	t.Helper()
	for i, calls := range histories {
		var history []porcupine.Operation
		for k, c := range calls {
			history = append(history, porcupine.Operation{Input: c[0], Output: c[1], Call: int64(2 * k), Return: int64(2*k + 1)})
		}
		if n := len(history) - 1; !verdict(t, model, history[:n]) {
			t.Errorf("%d: refuted:\n%s", i, describe(model, history[:n]))
		}
		if verdict(t, model, history) {
			t.Errorf("%d: not refuted:\n%s", i, describe(model, history))
		}
	}
}
