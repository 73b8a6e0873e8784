package percpu

import (
	"runtime"
	"sync"
	"testing"
	"time"
)

// TestHammerRWMutex has writers break and mend an invariant that readers check.
func TestHammerRWMutex(t *testing.T) {
	rounds := 20_000
	if testing.Short() {
		rounds = 2_000
	}
	var (
		rw   RWMutex
		a, b int
		wg   sync.WaitGroup
	)
	for g := range 8 {
		wg.Go(func() {
			for k := range rounds {
				if k%100 == 99 && g < 2 {
					rw.Lock()
					a++
					runtime.Gosched()
					b++
					rw.Unlock()
					continue
				}
				switch k % 3 {
				case 0:
					rw.RLock()
				case 1:
					for !rw.TryRLock() {
						runtime.Gosched()
					}
				case 2:
					rw.RLocker().Lock()
				}
				if a != b {
					t.Error("a reader beside a writer")
				}
				rw.RUnlock()
			}
		})
	}
	wg.Wait()
	if want := 2 * (rounds / 100); a != want || b != want {
		t.Errorf("%d and %d writes, want %d", a, b, want)
	}
}

// TestFault_P7: TryLock fails beside a reader, TryRLock beside a writer, and
// neither leaves anything behind.
func TestFault_P7(t *testing.T) {
	var rw RWMutex
	rw.RLock()
	if rw.TryLock() {
		t.Fatal("TryLock beside a reader")
	}
	rw.RUnlock()
	for range 1000 {
		rw.Lock()
		if rw.TryRLock() || rw.TryLock() {
			t.Fatal("TryRLock or TryLock beside a writer")
		}
		rw.Unlock()
		if !rw.TryLock() {
			t.Fatal("TryLock of a free RWMutex failed")
		}
		rw.Unlock()
	}
}

// TestFault_P8: a read lock may be given back by another goroutine, on another
// CPU, and the writer still gets in.
func TestFault_P8(t *testing.T) {
	var rw RWMutex
	for range 500 {
		rw.RLock()
		done := make(chan struct{})
		go func() {
			runtime.LockOSThread() // and end the thread
			rw.RUnlock()
			close(done)
		}()
		rw.Lock()
		rw.Unlock()
		<-done
	}
}

func TestRWMutexWriterWaits(t *testing.T) {
	var rw RWMutex
	rw.RLock()
	in := make(chan struct{})
	go func() {
		rw.Lock()
		close(in)
		rw.Unlock()
	}()
	select {
	case <-in:
		t.Fatal("a writer beside a reader")
	case <-time.After(20 * time.Millisecond):
	}
	rw.RUnlock()
	<-in
}

func TestRWMutexTooManyRUnlocks(t *testing.T) {
	var rw RWMutex
	if rw.plain() {
		t.Skip("a plain sync.RWMutex on this tier, whose own check is fatal")
	}
	rw.RLock()
	rw.RUnlock()
	rw.RUnlock()
	defer func() {
		if got := recover(); got != "percpu: RUnlock of an RWMutex that is not locked for reading" {
			t.Errorf("Lock after an RUnlock too many: %v", got)
		}
	}()
	rw.Lock()
}
