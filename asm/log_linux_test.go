package asm

import (
	"runtime"
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
