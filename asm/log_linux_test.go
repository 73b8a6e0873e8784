package asm

import (
	"encoding/binary"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// TestLog_GivesBack: the buffers of a Log that is gone are not mapped any more, and
// those of one that is not, are.
func TestLog_GivesBack(t *testing.T) {
	mapped := func(p uintptr) bool {
		var in [1]byte
		_, _, errno := unix.Syscall(unix.SYS_MINCORE, p, 1, uintptr(unsafe.Pointer(&in)))
		return errno == 0
	}
	onTiers(t, func(t *testing.T) {
		kept := new(Log)
		kept.Make(1 << 12)
		here := uintptr(kept.buffers[currentTier()])
		gone := make([]uintptr, 20)
		for i := range gone {
			l := new(Log)
			l.Make(1 << 12)
			l.Write(1, nil)
			if gone[i] = uintptr(l.buffers[currentTier()]); !mapped(gone[i]) {
				t.Fatal("a buffer is not where it is")
			}
		}
		for end := time.Now().Add(30 * time.Second); ; {
			left := 0
			for _, p := range gone {
				if mapped(p) {
					left++
				}
			}
			// Something else may have been mapped there meanwhile.
			if left <= len(gone)/2 {
				break
			}
			if time.Now().After(end) {
				t.Fatalf("%d of %d buffers are mapped after 30 s", left, len(gone))
			}
			runtime.GC()
			time.Sleep(time.Millisecond)
		}
		if !mapped(here) || !kept.Write(1, nil) {
			t.Error("so is one that is in use")
		}
		runtime.KeepAlive(kept)
	})
}

// crowdLog has threads that are tied to one CPU write records with write until the
// kernel has taken the CPU from each some times, mostly in the middle of a record.
// Whoever finds the buffer full takes the records out. It returns an error if one is
// lost, comes twice or is not what was written.
func crowdLog(t *testing.T, write logWriter) error {
	t.Helper()
	const threads, switches = 4, 20
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(2 * threads))
	var l Log
	l.Make(1 << 16)
	var (
		mu      sync.Mutex
		seen    = map[uint64]bool{}
		failed  error
		over    atomic.Bool
		written atomic.Int64
		taken   atomic.Int64
		wg      sync.WaitGroup
	)
	drain := func() {
		mu.Lock()
		defer mu.Unlock()
		if failed == nil {
			failed = checkLog(&l, seen, takeLog)
		}
		if failed != nil {
			over.Store(true)
		}
	}
	cpu := allowedCPUs(t)[0]
	end := time.Now().Add(5 * time.Second)
	for id := range uint64(threads) {
		wg.Go(func() {
			onCPU(t, cpu, func() {
				defer drain()
				var p [100]byte
				var before, now unix.Rusage
				_ = unix.Getrusage(unix.RUSAGE_THREAD, &before)
				for i := uint64(0); !over.Load(); i++ {
					id := id<<32 | i
					size := 8 + id*13%93
					binary.NativeEndian.PutUint64(p[:], id)
					for k := range p[8:size] {
						p[8+k] = byte(id*31) + byte(k)
					}
					for !write(&l, uint32(id), p[:size]) && !over.Load() {
						drain()
					}
					written.Add(1)
					if i%64 == 0 {
						_ = unix.Getrusage(unix.RUSAGE_THREAD, &now)
						if now.Nivcsw-before.Nivcsw >= switches || time.Now().After(end) {
							break
						}
					}
				}
				taken.Add(int64(now.Nivcsw - before.Nivcsw))
			})
		})
	}
	wg.Wait()
	if failed == nil && int64(len(seen)) != written.Load() {
		failed = fmt.Errorf("%d records were written and %d were read", written.Load(), len(seen))
	}
	t.Logf("%d written; the CPU was taken away %d times", written.Load(), taken.Load())
	return failed
}

// TestHammerLog_Crowd: no record is lost, doubled or torn on one CPU with many threads.
func TestHammerLog_Crowd(t *testing.T) {
	onTiers(t, func(t *testing.T) {
		if err := crowdLog(t, (*Log).Write); err != nil {
			t.Error(err)
		}
	})
}
