// Command mapping swaps a file that is mapped into memory while others read it, and unmaps the old one
// when its last reader has left. A reader that came too late would not see old bytes: it would die.
package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"

	"github.com/quiesce-go/quiesce/rcu"
)

// A table is a mapped file. The collector knows nothing of its bytes.
type table struct{ bytes []byte }

var (
	domain   = rcu.New()
	current  rcu.Pointer[table]
	unmapped atomic.Int64
)

// swap makes a new file with these contents the table. It does not wait for readers of the old one.
func swap(name string, contents []byte) error {
	if err := os.WriteFile(name, contents, 0o600); err != nil {
		return err
	}
	b, err := mapFile(name)
	if err != nil {
		return err
	}
	current.Replace(domain, &table{b}, func(old *table) {
		if unmap(old.bytes) == nil {
			unmapped.Add(1)
		}
	})
	return nil
}

// uniform reports whether all bytes of the table are the same, as run writes them.
func uniform() bool {
	g := domain.ReadLock()
	defer g.Unlock()
	b := current.Load().bytes
	return bytes.Count(b, b[:1]) == len(b)
}

// run swaps 50 files in dir beside readers, and returns how many of those saw something wrong.
func run(dir string) (bad int64, err error) {
	var (
		wg    sync.WaitGroup
		wrong atomic.Int64
		done  atomic.Bool
	)
	err = swap(filepath.Join(dir, "0"), make([]byte, 1<<14))
	for i := 1; i < 50 && err == nil; i++ {
		if i <= 3 {
			wg.Go(func() {
				for i := 0; i < 100 || !done.Load(); i++ {
					if !uniform() {
						wrong.Add(1)
					}
				}
			})
		}
		err = swap(filepath.Join(dir, fmt.Sprint(i)), bytes.Repeat([]byte{byte(i)}, 1<<14))
	}
	done.Store(true)
	wg.Wait()
	domain.Barrier(context.Background()) // all but the last are unmapped
	return wrong.Load(), err
}
