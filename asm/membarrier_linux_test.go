package asm

import (
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/quiesce-go/quiesce/internal/storm"
)

// withMembarrier replaces the system call and makes the process forget what it
// knows.
func withMembarrier(t *testing.T, call func(cmd uintptr) (uintptr, unix.Errno)) {
	oldCall, oldOnce := membarrierCall, membarrierOnce
	t.Cleanup(func() { membarrierCall, membarrierOnce = oldCall, oldOnce })
	membarrierCall, membarrierOnce = call, sync.OnceValue(membarrierStart)
}

func TestMembarrier_Refused(t *testing.T) {
	const both = membarrierPrivateExpedited | membarrierRegisterPrivateExpedited
	type answer struct {
		mask  uintptr
		errno unix.Errno
	}
	for _, test := range []struct {
		name                   string
		query, register, fence answer
		calls                  int
		unsupported            bool
		want                   string
	}{
		{"ENOSYS", answer{0, unix.ENOSYS}, answer{}, answer{}, 1, true, "not implemented"},
		{"EPERM", answer{0, unix.EPERM}, answer{}, answer{}, 1, true, "not permitted"},
		{"mask 0", answer{}, answer{}, answer{}, 1, true, "no private expedited"},
		{"no registration", answer{mask: both &^ membarrierRegisterPrivateExpedited}, answer{}, answer{}, 1, true, "no private expedited"},
		{"registration refused", answer{mask: both}, answer{0, unix.EPERM}, answer{}, 2, false, "registration: operation not permitted"},
		{"first use refused", answer{mask: both}, answer{}, answer{0, unix.EPERM}, 3, false, "operation not permitted"},
		{"works", answer{mask: both | 1}, answer{}, answer{}, 3, false, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			calls := 0
			withMembarrier(t, func(cmd uintptr) (uintptr, unix.Errno) {
				calls++
				a := map[uintptr]answer{membarrierQuery: test.query, membarrierRegisterPrivateExpedited: test.register, membarrierPrivateExpedited: test.fence}[cmd]
				return a.mask, a.errno
			})
			for range 3 {
				err := Membarrier()
				if test.want == "" && err == nil {
					continue
				}
				if err == nil || test.want == "" || !strings.Contains(err.Error(), test.want) || !strings.HasPrefix(err.Error(), "asm: ") ||
					test.unsupported && !errors.Is(err, ErrUnsupported) {
					t.Fatalf("%v; want %q", err, test.want)
				}
			}
			if calls != test.calls {
				t.Errorf("%d calls, want %d: the answer is decided once", calls, test.calls)
			}
		})
	}
}

// TestFence_RefusedLater: the kernel was willing once, and Fence has to work.
func TestFence_RefusedLater(t *testing.T) {
	if err := Membarrier(); err != nil {
		t.Skip(err)
	}
	real := membarrierCall
	refuse := false
	withMembarrier(t, func(cmd uintptr) (uintptr, unix.Errno) {
		if refuse {
			return 0, unix.EPERM
		}
		return real(cmd)
	})
	if err := Membarrier(); err != nil {
		t.Fatal(err)
	}
	refuse = true
	if err := Membarrier(); err != nil {
		t.Errorf("the answer changed: %v", err)
	}
	litmusFence(t, Fence, 2_000_000)
}

// TestHammerGate_RefusedLater: the kernel was willing when the Gate was made, and refuses one fence or the other, or
// both, from some moment on.
func TestHammerGate_RefusedLater(t *testing.T) {
	if !Gates() {
		t.Skip("no gates in this build, or on this kernel")
	}
	real := membarrierCall
	defer func() { membarrierCall = real }()
	for name, refused := range map[string]uintptr{
		"fence": membarrierPrivateExpedited, "abort": membarrierRSEQ, "both": membarrierPrivateExpedited | membarrierRSEQ,
	} {
		t.Run(name, func(t *testing.T) {
			calls := 0
			membarrierCall = func(cmd uintptr) (uintptr, unix.Errno) { // by the one who shuts, only
				if calls++; cmd&refused != 0 && calls > 20 {
					return 0, unix.EPERM
				}
				return real(cmd)
			}
			stormy := func(one func()) func() { return storm.Start(t, storm.Threads(one)) }
			if surplus, late := hammerGate(stormy, some(20, time.Second)); surplus != 0 || late != 0 {
				t.Errorf("%d Adds too many, or too few, were counted; %d times an Add came after Shut", surplus, late)
			}
		})
	}
}
