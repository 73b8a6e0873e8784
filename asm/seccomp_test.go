//go:build linux && (amd64 || arm64)

package asm

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// refuse has the kernel answer the system calls with errno, in every thread of
// the process and in those it will start. With errno 0 they seem to succeed and
// do nothing.
func refuse(errno unix.Errno, calls ...uint32) error {
	const setModeFilter, tsync, retErrno, retAllow = 1, 1, 0x50000, 0x7fff0000
	program := []unix.SockFilter{{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: 0}} // seccomp_data.nr
	for i, nr := range calls {
		program = append(program, unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, Jt: uint8(len(calls) - i), K: nr})
	}
	program = append(program,
		unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: retAllow},
		unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: retErrno | uint32(errno)})
	runtime.LockOSThread() // for both calls to be made by one thread
	defer runtime.UnlockOSThread()
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("no_new_privs: %w", err)
	}
	prog := unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]}
	if _, _, e := unix.Syscall(unix.SYS_SECCOMP, setModeFilter, tsync, uintptr(unsafe.Pointer(&prog))); e != 0 {
		return fmt.Errorf("seccomp: %w", e)
	}
	return nil
}

var seccompCalls = map[string][]uint32{
	"rseq":       {unix.SYS_RSEQ},
	"membarrier": {unix.SYS_MEMBARRIER},
	"getcpu":     {unix.SYS_GETCPU},
	"timer":      {unix.SYS_TIMER_CREATE},
	"all":        {unix.SYS_RSEQ, unix.SYS_MEMBARRIER, unix.SYS_GETCPU},
}

func init() {
	// seccomp is the calls' name, the errno, and "start" or "later".
	children["seccomp"] = func(arg string) {
		var calls, when string
		var errno int
		fmt.Sscan(arg, &calls, &errno, &when)
		if when == "later" {
			if err := count(1 << 18); err != nil {
				fmt.Println("before:", err)
			}
			Membarrier()
		}
		if err := refuse(unix.Errno(errno), seccompCalls[calls]...); err != nil {
			fmt.Println("skip:", err)
			return
		}
		err := count(1 << 20)
		_, rseq := RSEQ()
		Fence()
		info, _ := RSEQ()
		fmt.Printf("count: %v\nrseq: %v\nmembarrier: %v\nrefused: %d\ncpu: %t\n", err, rseq, Membarrier(), info.Refused, CPU() >= 0)
	}
}

// TestSeccomp enters a sandbox that refuses what this package wants, or seems
// not to, at first or when everything had been working.
func TestSeccomp(t *testing.T) {
	needChildren(t)
	for calls := range seccompCalls {
		for _, errno := range []unix.Errno{unix.EPERM, unix.ENOSYS, 0} {
			for _, when := range []string{"start", "later"} {
				t.Run(fmt.Sprintf("%s/errno=%d/%s", calls, errno, when), func(t *testing.T) {
					t.Parallel()
					out := child(t, "seccomp", fmt.Sprint(calls, " ", int(errno), " ", when))
					if why, ok := strings.CutPrefix(out, "skip: "); ok {
						t.Skip(why)
					}
					if !strings.HasPrefix(out, "count: <nil>\n") || !strings.HasSuffix(out, "cpu: true\n") || strings.Count(out, "\n") != 5 {
						t.Errorf("got\n%s", out)
					}
					t.Log(out)
				})
			}
		}
	}
}
