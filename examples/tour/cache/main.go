// Command cache has a map behind a lock that readers on different CPUs do not slow each other down
// with. A writer pays for it, so this is for what is read a thousand times as often as it is written.
package main

import (
	"fmt"
	"strings"
	"sync"

	"github.com/quiesce-go/quiesce/percpu"
)

// A cache keeps what fill made. The zero cache with a fill is ready.
type cache struct {
	fill func(key string) string

	mu      percpu.RWMutex
	entries map[string]string // guarded by mu
	hits    percpu.Counter
	misses  percpu.Counter
}

// get returns the value of key, which is made if it is not there. Of several goroutines that miss a key
// at once, one makes it.
func (c *cache) get(key string) string {
	c.mu.RLock()
	v, ok := c.entries[key]
	c.mu.RUnlock()
	if ok {
		c.hits.Inc()
		return v
	}

	c.mu.Lock()
	defer c.mu.Unlock()
	if v, ok := c.entries[key]; ok { // somebody was faster
		c.hits.Inc()
		return v
	}
	c.misses.Inc()
	if c.entries == nil {
		c.entries = make(map[string]string)
	}
	v = c.fill(key)
	c.entries[key] = v
	return v
}

func main() {
	c := cache{fill: strings.ToUpper}
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for i := range 1000 {
				c.get([]string{"a", "b", "c"}[i%3])
			}
		})
	}
	wg.Wait()
	fmt.Println(c.get("a"), "hits", c.hits.Sum(), "misses", c.misses.Sum())
}
