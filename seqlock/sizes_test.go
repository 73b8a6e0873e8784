package seqlock

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
)

var readsFlag = flag.Int("reads", 0, "how many reads TestHammerSizes makes of each size, with each number of readers, and TestFault_S1 in all (0: some)")

// sizes are those around every power of two up to 1024 bytes, and 0.
func sizes() (all []int) {
	all = []int{0, 1, 2, 3}
	for p := 4; p < maxSize; p *= 2 {
		all = append(all, p-1, p, p+1)
	}
	return append(all, maxSize-1, maxSize)
}

// TestHammerSizes has a writer that never rests fill values with bytes that are
// all alike, and 1 to 4 readers look for two that are not. The default is
// enough to see a routine that copies a size wrongly, or forgets a step; the
// 10,000,000 of -reads=10000000 take some minutes.
func TestHammerSizes(t *testing.T) {
	reads, most := *readsFlag, 4
	if reads == 0 {
		if reads = 10_000; testing.Short() {
			reads, most = 200, 2
		}
	}
	if runtime.GOMAXPROCS(0) < 2 {
		defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(2))
	}
	for _, n := range sizes() {
		for readers := 1; readers <= most; readers++ {
			var v raw
			v.use(&v.buf)
			err := hammerSize(n, readers, reads,
				func(p *byte) { anyLoad(&v.head, p, uintptr(n)) },
				func(p *byte) { anyStore(&v.head, p, uintptr(n)) })
			if err != nil {
				t.Errorf("Value of %d bytes, %d readers: %v", n, readers, err)
			}
			var l rawLatch
			l.use(&l.halves)
			err = hammerSize(n, readers, reads,
				func(p *byte) { anyLoadLatch(&l.latch, p, uintptr(n), rawStride) },
				func(p *byte) {
					l.mu.Lock()
					defer l.mu.Unlock()
					anyWriteLatch(&l.latch, p, uintptr(n), rawStride)
				})
			if err != nil {
				t.Errorf("Latch of %d bytes, %d readers: %v", n, readers, err)
			}
		}
		if *readsFlag > 0 {
			t.Logf("%d bytes: done", n)
		}
	}
}

// hammerSize makes reads beside a writer of n bytes, and returns the last fault
// that a reader found.
func hammerSize(n, readers, reads int, load, store func(p *byte)) error {
	const guard = 16
	var (
		stop   atomic.Bool
		began  = make(chan struct{})
		writer sync.WaitGroup
		wg     sync.WaitGroup
		fault  atomic.Pointer[error]
	)
	writer.Go(func() {
		var p [maxSize + 1]byte
		for i := 1; !stop.Load(); i++ {
			for j := range p[:n] {
				p[j] = byte(i)
			}
			store(&p[0])
			if i == 1 {
				close(began)
			}
		}
	})
	<-began
	for range readers {
		wg.Go(func() {
			var buf [guard + maxSize + guard]byte
			var untouched [maxSize + guard]byte
			p := buf[guard : guard+n]
			for range reads / readers {
				load(&buf[guard])
				if n > 0 && !bytes.Equal(p[1:], p[:n-1]) {
					err := fmt.Errorf("torn: %v", p)
					fault.Store(&err)
					return
				}
			}
			if !bytes.Equal(buf[:guard], untouched[:guard]) || !bytes.Equal(buf[guard+n:], untouched[n:]) {
				err := errors.New("a load changed what lies beside the T that it loads to")
				fault.Store(&err)
			}
		})
	}
	wg.Wait()
	stop.Store(true)
	writer.Wait()
	if err := fault.Load(); err != nil {
		return *err
	}
	return nil
}
