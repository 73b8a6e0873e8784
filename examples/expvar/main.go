// Command expvar serves HTTP with counters that cost a few nanoseconds however many CPUs count, and
// publishes them where package expvar publishes everything:
//
//	go run ./examples/expvar -addr localhost:8080 &
//	curl -s localhost:8080/hello localhost:8080/debug/vars
package main

import (
	"expvar"
	"flag"
	"fmt"
	"log"
	"net/http"

	"github.com/quiesce-go/quiesce/percpu"
)

// metrics are those of one server. A *percpu.Counter and a *percpu.BatchCounter are expvar.Vars as they
// are: a look at /debug/vars adds up what the CPUs have counted.
type metrics struct {
	requests percpu.Counter
	bytes    percpu.Counter
	busy     *percpu.BatchCounter // requests in progress, which are limited
}

const (
	maxBusy = 1000
	batch   = 8
)

// publish makes m known under prefix. It may be done once for each.
func (m *metrics) publish(prefix string) {
	expvar.Publish(prefix+".requests", &m.requests)
	expvar.Publish(prefix+".bytes", &m.bytes)
	expvar.Publish(prefix+".busy", m.busy)
}

// ServeHTTP counts a request and answers it, if not too many are in progress.
func (m *metrics) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	m.requests.Inc()
	if !m.busy.TryAdd(maxBusy, 1) {
		http.Error(w, "too many requests", http.StatusServiceUnavailable)
		return
	}
	defer m.busy.Add(-1)
	n, _ := fmt.Fprintf(w, "Hello, %s\n", r.URL.Path)
	m.bytes.Add(int64(n))
}

func newMetrics() *metrics { return &metrics{busy: percpu.NewBatchCounter(batch)} }

func main() {
	addr := flag.String("addr", "localhost:8080", "where to listen")
	flag.Parse()
	m := newMetrics()
	m.publish("hello")
	http.Handle("/", m) // and expvar has added /debug/vars
	log.Printf("http://%s/debug/vars", *addr)
	log.Fatal(http.ListenAndServe(*addr, nil))
}
