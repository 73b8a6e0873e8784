//go:build linux && !android && (amd64 || arm64) && gc && !purego && !race && !go1.28

package asm

import (
	"fmt"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/quiesce-go/quiesce/internal/storm"
)

// A kernel is what rseq(2) does, as far as the caller can tell.
type kernel func(a *area) unix.Errno

var kernels = map[string]kernel{
	"ENOSYS":  func(*area) unix.Errno { return unix.ENOSYS },
	"EPERM":   func(*area) unix.Errno { return unix.EPERM },
	"EINVAL":  func(*area) unix.Errno { return unix.EINVAL },
	"EBUSY":   func(*area) unix.Errno { return unix.EBUSY },
	"EFAULT":  func(*area) unix.Errno { return unix.EFAULT },
	"nothing": func(*area) unix.Errno { return 0 },
	// The next four fill in a number and never restart anything.
	"zero":   func(a *area) unix.Errno { return says(a, 0) },
	"far":    func(a *area) unix.Errno { return says(a, uint32(columns)) },
	"huge":   func(a *area) unix.Errno { return says(a, 1<<31-1) },
	"honest": func(a *area) unix.Errno { cpu, _, _ := getcpu(); return says(a, uint32(cpu)) },
}

func says(a *area, cpu uint32) unix.Errno {
	atomic.StoreUint32(&a.cpuStart, cpu)
	atomic.StoreUint32(&a.cpuID, cpu)
	return 0
}

func init() {
	// refused is the kernel's name and the number of threads that the real one
	// registers before.
	children["refused"] = func(arg string) {
		var name string
		var after int32
		fmt.Sscan(arg, &name, &after)
		real := rseqSyscall
		// It runs pinned, so there is no lock here.
		var accepted [8]atomic.Pointer[area]
		var n atomic.Int32
		rseqSyscall = func(a *area) unix.Errno {
			first := atomic.LoadUint32(&a.cpuID) == cpuUninitialized
			for i := range accepted {
				if !first && accepted[i].Load() == a {
					return real(a) // the same thread once more
				}
			}
			if n.Load() >= after {
				return kernels[name](a)
			}
			errno := real(a)
			if errno == 0 {
				accepted[n.Add(1)-1].Store(a)
			}
			return errno
		}
		err := count(1 << 20)
		info, rseqErr := RSEQ()
		_, again := RSEQ()
		fmt.Printf("count: %v\n", err)
		fmt.Printf("rseq: %v\n", rseqErr)
		fmt.Printf("again: %v\n", fmt.Sprint(again) == fmt.Sprint(rseqErr))
		fmt.Printf("refused: %d\n", info.Refused)
		fmt.Printf("cpu: %d\n", CPU())
	}
}

// TestFault_P9: a kernel that refuses to register threads, at once or later, or
// that says it has and has not, costs speed and no count.
func TestFault_P9(t *testing.T) {
	if isCgo {
		t.Skip("with cgo, libc registers the threads; see TestSeccomp")
	}
	needChildren(t)
	for name := range kernels {
		for _, after := range []int{0, 1, 3} {
			t.Run(fmt.Sprintf("%s/after=%d", name, after), func(t *testing.T) {
				t.Parallel()
				out := child(t, "refused", fmt.Sprint(name, " ", after))
				if !strings.Contains(out, "count: <nil>\n") || !strings.Contains(out, "again: true\n") {
					t.Errorf("got\n%s", out)
				}
				works := strings.Contains(out, "rseq: <nil>\n")
				switch {
				case after == 0 && works:
					t.Errorf("RSEQ reports that it works:\n%s", out)
				case after > 0 && !works:
					t.Errorf("RSEQ reports that it does not work:\n%s", out)
				case after > 0 && strings.Contains(out, "refused: 0\n"):
					t.Errorf("no refusal is counted:\n%s", out)
				}
				if lines := strings.Count(out, "\n"); lines != 5 {
					t.Errorf("%d lines, so something else was printed:\n%s", lines, out)
				}
			})
		}
	}
}

func init() {
	children["slow"] = func(string) {
		real := rseqSyscall
		turns := 80_000_000
		if storm.Slow() {
			turns /= 50
		}
		rseqSyscall = func(a *area) unix.Errno {
			errno := real(a)
			for range turns { // without a call, at which the scheduler's wish would be forgotten
			}
			return errno
		}
		runtime.GOMAXPROCS(4)
		for range 20 {
			go func() {
				for {
					runtime.Gosched()
				}
			}()
		}
		_, err := RSEQ()
		fmt.Print("rseq: ", err)
	}
}

// TestRSEQ_SlowStart: where everything takes long, the scheduler moves the
// goroutine that decides to another thread as soon as it may. It must not take
// that thread, which has no area, for a lack of memory.
func TestRSEQ_SlowStart(t *testing.T) {
	if _, err := RSEQ(); err != nil {
		t.Skip(err)
	}
	for range 5 {
		if out := child(t, "slow", ""); out != "rseq: <nil>" {
			t.Fatal(out)
		}
	}
}
