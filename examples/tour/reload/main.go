// Command reload replaces a configuration that holds a file, while workers use it: each has what it
// loaded to the end of its section, and the file is closed when the last one that could have it has
// left.
package main

import (
	"context"
	"fmt"
	"os"
	"sync"
	"sync/atomic"

	"github.com/quiesce-go/quiesce/rcu"
)

type config struct { // is never changed
	version int
	log     *os.File
}

var (
	domain  = rcu.New()
	current rcu.Pointer[config]
)

// load makes a configuration the current one, and has the log of the one before closed when nobody can
// use it any more. It does not wait for that.
func load(version int) error {
	f, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	current.Replace(domain, &config{version, f}, func(old *config) { old.log.Close() })
	return nil
}

// handle is a request. A write to a closed file would fail.
func handle(r *rcu.Reader) error {
	r.Lock()
	defer r.Unlock()
	_, err := fmt.Fprintln(current.Load().log, "a request")
	return err
}

// run has workers handle requests while a hundred configurations come and go, and returns how many
// failed, and the last version.
func run() (failed int64, version int, err error) {
	if err := load(0); err != nil {
		return 0, 0, err
	}
	var (
		wg   sync.WaitGroup
		bad  atomic.Int64
		done atomic.Bool
	)
	for range 4 {
		wg.Go(func() {
			r := domain.NewReader()
			defer r.Close()
			for i := 0; i < 100 || !done.Load(); i++ {
				if handle(r) != nil {
					bad.Add(1)
				}
			}
		})
	}
	for v := 1; v <= 100 && err == nil; v++ {
		err = load(v)
	}
	done.Store(true)
	wg.Wait()
	domain.Barrier(context.Background()) // all logs but the last are closed
	return bad.Load(), current.Load().version, err
}

func main() {
	failed, version, err := run()
	fmt.Println("version", version, "failed requests:", failed, "error:", err)
}
