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

// TestLog_GivesBack: the buffers of a Log that is gone are given back to the kernel,
// and those of one that is not, are not.
func TestLog_GivesBack(t *testing.T) {
	const magic = 0x5a5a0123456789a5
	var pipe [2]int
	if err := unix.Pipe(pipe[:]); err != nil {
		t.Fatal(err)
	}
	defer unix.Close(pipe[0])
	defer unix.Close(pipe[1])
	// there reports whether magic is at p. If it is not, p is not mapped, or
	// something else is.
	there := func(p uintptr) bool {
		var b [8]byte
		if _, _, errno := unix.Syscall(unix.SYS_WRITE, uintptr(pipe[1]), p, uintptr(len(b))); errno != 0 {
			return false
		}
		_, err := unix.Read(pipe[0], b[:])
		return err == nil && binary.NativeEndian.Uint64(b[:]) == magic
	}
	onTiers(t, func(t *testing.T) {
		mark := func(l *Log) uintptr {
			l.Make(1 << 12)
			w := l.buffer(currentTier(), 0).word(100)
			*w = magic
			return uintptr(unsafe.Pointer(w))
		}
		kept := new(Log)
		here := mark(kept)
		gone := make([]uintptr, 20)
		for i := range gone {
			if gone[i] = mark(new(Log)); i == 0 && !there(here) {
				t.Fatal("a buffer is not where it is")
			}
		}
		for end := time.Now().Add(30 * time.Second); ; runtime.Gosched() {
			left := 0
			for _, p := range gone {
				if there(p) {
					left++
				}
			}
			if left <= 1 { // one may be in a register, or what the collector takes for one
				break
			}
			if time.Now().After(end) {
				t.Fatalf("%d of %d buffers are there after 30 s", left, len(gone))
			}
			runtime.GC()
		}
		if !there(here) || !kept.Write(1, nil) {
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
