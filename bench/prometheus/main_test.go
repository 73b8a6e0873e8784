package main

import (
	"fmt"
	"net/http/httptest"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Requests of many goroutines, and what a scrape says after them.
func Example() {
	m := newMetrics()
	r := prometheus.NewRegistry()
	m.register(r)

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
	promhttp.HandlerFor(r, promhttp.HandlerOpts{}).ServeHTTP(page, httptest.NewRequest("GET", "/metrics", nil))
	fmt.Print(page.Body)
	// Output:
	// # HELP hello_requests_busy Requests in progress.
	// # TYPE hello_requests_busy gauge
	// hello_requests_busy 0
	// # HELP hello_requests_total Requests since the start.
	// # TYPE hello_requests_total counter
	// hello_requests_total 800
}
