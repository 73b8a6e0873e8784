package main

import (
	"encoding/json"
	"expvar"
	"fmt"
	"net/http/httptest"
	"sync"

	"github.com/quiesce-go/quiesce/percpu"
	"github.com/quiesce-go/quiesce/rcu"
)

// What can be published as it is.
var _ = []expvar.Var{new(percpu.Counter), new(percpu.BatchCounter), percpu.Usage{}, new(rcu.Domain), rcu.Stats{}}

// Requests of many goroutines, and what /debug/vars says after them.
func Example() {
	m := newMetrics()
	m.publish("example")

	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 100 {
				m.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/you", nil))
			}
		})
	}
	wg.Wait()

	page := httptest.NewRecorder()
	expvar.Handler().ServeHTTP(page, httptest.NewRequest("GET", "/debug/vars", nil))
	var vars map[string]json.RawMessage
	if err := json.Unmarshal(page.Body.Bytes(), &vars); err != nil {
		fmt.Println(err)
	}
	for _, name := range []string{"example.requests", "example.bytes", "example.busy"} {
		fmt.Printf("%s %s\n", name, vars[name])
	}
	// Output:
	// example.requests 800
	// example.bytes 9600
	// example.busy 0
}
