//go:build linux && !android && (amd64 || arm64) && gc && !purego && !race && !go1.28

package asm

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/quiesce-go/quiesce/internal/pin"
	"github.com/quiesce-go/quiesce/internal/storm"
)

// TestFault_P10: nothing hangs on the kernel's writing cpu_id_start, node_id or mm_cid anew, which it
// does not do for a thread that came back where it was: they hold nonsense here.
func TestFault_P10(t *testing.T) {
	if _, err := RSEQ(); err != nil {
		t.Skip(err)
	}
	if isCgo {
		t.Skip("the areas are libc's, and others rely on them")
	}
	var b Block
	b.Alloc(2)
	var did atomic.Int64
	poison := func() {
		pin.Pin()
		if a := currentArea(); a != nil {
			atomic.StoreUint32(&a.cpuStart, 0xdeadbeef)
			atomic.StoreUint32(&a.node, 0xdeadbeef)
			atomic.StoreUint32(&a.mmCID, 0xdeadbeef)
		}
		pin.Unpin()
	}
	one := func() {
		poison()
		b.Add(0, 1)
		for {
			col := Column()
			if old := b.Load(col, 1); b.CompareAndSwap(col, 1, old, old+1) {
				break
			}
		}
		did.Add(1)
	}
	calm := storm.Start(t, storm.Threads(one))
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for i := range storm.Size(1_000_000) / 4 {
				if one(); i%512 == 0 {
					runtime.Gosched() // a system call, before long
				}
			}
		})
	}
	wg.Wait()
	calm()
	if b.Sum(0) != did.Load() || b.Sum(1) != did.Load() {
		t.Errorf("%d updates were counted as %d and %d", did.Load(), b.Sum(0), b.Sum(1))
	}
	if cpu, _, ok := getcpu(); ok && cpu >= columns || CPU() >= columns {
		t.Errorf("CPU numbers %d and %d of %d", cpu, CPU(), columns)
	}
}
