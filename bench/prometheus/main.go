// Command prometheus serves HTTP with percpu counters, which Prometheus can scrape:
//
//	go -C bench run ./prometheus -addr localhost:8080 &
//	curl -s localhost:8080/hello localhost:8080/metrics
//
// It is in this module so that the root module does not need Prometheus' client library.
package main

import (
	"flag"
	"fmt"
	"log"
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/quiesce-go/quiesce/percpu"
)

// metrics are those of one server.
type metrics struct {
	requests percpu.Counter
	busy     *percpu.BatchCounter // requests in progress
}

// register makes m known to r. The counters are only added up when somebody scrapes; what a request
// does stays one plain instruction. A CounterFunc must never fall, which a Counter does only if it is
// given something negative, or Reset.
func (m *metrics) register(r prometheus.Registerer) {
	r.MustRegister(
		prometheus.NewCounterFunc(prometheus.CounterOpts{
			Name: "hello_requests_total", Help: "Requests since the start.",
		}, func() float64 { return float64(m.requests.Sum()) }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "hello_requests_busy", Help: "Requests in progress.",
		}, func() float64 { return float64(m.busy.Sum()) }),
	)
}

func (m *metrics) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	m.requests.Inc()
	m.busy.Add(1)
	defer m.busy.Add(-1)
	fmt.Fprintf(w, "Hello, %s\n", r.URL.Path)
}

func newMetrics() *metrics { return &metrics{busy: percpu.NewBatchCounter(8)} }

func main() {
	addr := flag.String("addr", "localhost:8080", "where to listen")
	flag.Parse()
	m := newMetrics()
	m.register(prometheus.DefaultRegisterer)
	http.Handle("/", m)
	http.Handle("/metrics", promhttp.Handler())
	log.Printf("http://%s/metrics", *addr)
	log.Fatal(http.ListenAndServe(*addr, nil))
}
