//go:build linux && !android && (amd64 || arm64) && gc && !purego && !race && !go1.28

package asm

import (
	"bytes"
	"fmt"
	"os"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/quiesce-go/quiesce/internal/gate"
)

// steps is for how long the child is single-stepped after each mark: enough for
// 64 sequences, each of which is aborted by its first step.
const steps = 64*6 + 200

func init() {
	if name, _, _ := strings.Cut(os.Getenv(childVariable), " "); name == "stepped" || name == "interrupted" {
		runtime.LockOSThread() // so that TestMain has the first thread, which is traced
	}
	children["stepped"] = func(string) {
		var b Block
		b.Alloc(16)
		b.Add(0, 0)
		col := Column()
		if col >= columns {
			fmt.Print("skip: libc has registered the first thread with the kernel, and not for us")
			return
		}
		pid, tid := uintptr(unix.Getpid()), uintptr(unix.Gettid())
		// From each mark on the thread goes step by step for a while. Nothing else
		// than the assembly is between a mark and the sequence: a thread that is so
		// slow is preempted by the Go scheduler wherever it can be.
		mark := func() { unix.RawSyscall(unix.SYS_TGKILL, pid, tid, uintptr(unix.SIGUSR1)) }
		var l Log
		l.Make(4096)
		var c Claims
		c.Make()
		c.Open()
		var got [7]int
		mark()
		got[0] = blockCompareAndSwap(&b, 1, col, 0, 1)
		mark()
		if _, slot := blockTryLock(&b, 10); slot >= tierShared*columns {
			got[1] = seqCannot // it fell back
		}
		mark()
		got[2] = blockSwapTwo(&b, 1, col, 0, 1, 2, 0)
		mark()
		got[3] = blockPush(&b, 3, 4, 0)
		mark()
		got[4], _ = blockPop(&b, 3)
		mark()
		got[5] = blockAddWithin(&b, 9, 1, -10, 10)
		mark()
		if onlyClaim(&c, 1) == nil {
			got[6] = seqCannot // it went elsewhere
		}
		mark()
		b.Add(0, 1)
		mark()
		logged := l.Write(1, []byte("payload"))
		slow := 0
		gate.Slow = func(unsafe.Pointer, int, int64) { slow++ }
		mark()
		gateAdd(&b, 0, 1)
		fell, fallen := int64(0), uint64(0)
		for c := range columns {
			fell += b.Load(columns+c, 0)
			fallen += l.End(tierShared*columns + c)
		}
		fmt.Println(got, fell, b.Sum(0), b.Sum(1), b.Sum(3), b.Sum(9), logged, fallen, slow)
	}
}

// TestSingleStep runs each sequence under a debugger that stops at every
// instruction, and so aborts it every time: it has to give up, and Add to fall
// back.
func TestSingleStep(t *testing.T) {
	if _, err := RSEQ(); err != nil {
		t.Skip(err)
	}
	cmd := childCommand(t, "stepped", "")
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	cmd.SysProcAttr = &syscall.SysProcAttr{Ptrace: true, Pdeathsig: unix.SIGKILL}
	runtime.LockOSThread() // a tracer is a thread
	defer runtime.UnlockOSThread()
	if err := cmd.Start(); err != nil {
		t.Skip("this process may not trace another: ", err)
	}
	left, marks := 0, 0
	for {
		var status unix.WaitStatus
		if _, err := unix.Wait4(cmd.Process.Pid, &status, unix.WALL, nil); err != nil {
			t.Fatal(err)
		}
		if status.Exited() || status.Signaled() {
			_ = cmd.Wait() // its pipes; the process is gone
			if status.ExitStatus() != 0 {
				t.Fatalf("it ended with %#x\n%s", status, out.String())
			}
			break
		}
		pass := 0
		switch sig := status.StopSignal(); sig {
		case unix.SIGTRAP, unix.SIGURG: // a step; the scheduler's, which will ask again
		case unix.SIGUSR1:
			marks++
			left = steps
		default:
			pass = int(sig)
		}
		request := unix.PTRACE_CONT
		if left > 0 {
			left--
			request = unix.PTRACE_SINGLESTEP
		}
		if err := ptrace(request, cmd.Process.Pid, pass); err != nil {
			t.Fatal(err)
		}
	}
	if why, ok := strings.CutPrefix(out.String(), "skip: "); ok {
		t.Skip(why)
	}
	if want := "[-2 -2 -2 -2 -2 -2 -2] 1 1 0 0 0 true 3 1\n"; out.String() != want || marks != 10 {
		t.Errorf("with %d marks: %swant %s", marks, out.String(), want)
	}
}

func ptrace(request, pid, signal int) error {
	_, _, errno := unix.Syscall6(unix.SYS_PTRACE, uintptr(request), uintptr(pid), 0, uintptr(signal), 0, 0)
	if errno != 0 {
		return fmt.Errorf("ptrace: %w", errno)
	}
	return nil
}
