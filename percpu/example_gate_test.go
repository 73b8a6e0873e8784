package percpu_test

import (
	"fmt"
	"sync"

	"github.com/quiesce-go/quiesce/percpu"
)

// A configuration that every request reads.
func ExampleRWMutex() {
	var mu percpu.RWMutex // readers on different CPUs do not slow each other down
	limits := map[string]int{"alice": 3}

	mu.Lock()
	limits["bob"] = 5
	mu.Unlock()

	mu.RLock()
	fmt.Println(limits["alice"], limits["bob"])
	mu.RUnlock()
	// Output: 3 5
}

// A connection that closes when its owner has let go and the last request is
// done.
func ExampleRef() {
	conn := percpu.NewRef(func() { fmt.Println("closed") })

	conn.Get() // a request begins
	conn.Kill()
	fmt.Println("another request:", conn.TryGetLive())
	conn.Put() // the request is done
	// Output:
	// another request: false
	// closed
}

// Statistics with more than one field.
func ExampleLocal() {
	type stats struct{ requests, bytes int }
	perCPU := percpu.NewLocal[stats](nil)

	var wg sync.WaitGroup
	for range 10 {
		wg.Go(func() {
			perCPU.Do(func(s *stats) {
				s.requests++
				s.bytes += 100
			})
		})
	}
	wg.Wait()
	var total stats
	for _, s := range perCPU.All() {
		total.requests += s.requests
		total.bytes += s.bytes
	}
	fmt.Println(total)
	// Output: {10 1000}
}

// A limit on something that is counted on every CPU.
func ExampleBatchCounter() {
	open := percpu.NewBatchCounter(32)
	for range 5 {
		open.Add(1)
	}
	fmt.Println(open.TryAdd(6, 1), open.TryAdd(6, 1), open.Sum())
	fmt.Println(open.Compare(1000))
	// Output:
	// true false 6
	// -1
}
