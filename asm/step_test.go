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

	"golang.org/x/sys/unix"
)

const steppedAdds = 5

func init() {
	if strings.HasPrefix(os.Getenv(childVariable), "stepped") {
		runtime.LockOSThread() // so that TestMain has the first thread, which is traced
	}
	children["stepped"] = func(string) {
		var b Block
		b.Alloc(16)
		b.Add(0, 0)
		if Column() >= columns {
			fmt.Print("skip: libc has registered the first thread with the kernel, and not for us")
			return
		}
		fallbacks := func(i int) (sum int64) {
			for c := range columns {
				sum += b.Load(columns+c, i)
			}
			return sum
		}
		gave := func(what string, i int) {
			fmt.Printf("%s %d, not by falling back %d\n", what, b.Sum(i), b.Sum(i)-fallbacks(i))
		}
		mark := func() { _ = unix.Tgkill(unix.Getpid(), unix.Gettid(), unix.SIGUSR1) }
		old := Column()
		swaps := 0
		mark() // from here on, one instruction at a time
		for range steppedAdds {
			b.Add(0, 1)
			if b.CompareAndSwap(old, 1, 0, 1) {
				swaps++
			}
			b.Push(2, 8, 5)
			b.AddWithin(11, 1, 1000)
		}
		mark() // to here
		gave("adds", 0)
		gave("swaps", 1)
		gave("pushes", 2)
		gave("within", 11)
		fmt.Println("swaps said", swaps)
	}
}

// TestSingleStep runs sequences under a debugger that stops at every
// instruction, and so aborts every one of them: they have to give up and fall
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
	steps, marks := 0, 0
	pid := cmd.Process.Pid
	for {
		var status unix.WaitStatus
		if _, err := unix.Wait4(pid, &status, unix.WALL, nil); err != nil {
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
		case unix.SIGTRAP:
		case unix.SIGUSR1:
			marks++
		default:
			pass = int(sig)
		}
		var err error
		if marks == 1 {
			if steps++; steps > 10_000_000 {
				_ = cmd.Process.Kill()
				t.Fatal("it does not get on")
			}
			if pass == int(unix.SIGURG) {
				pass = 0 // the scheduler's; it will ask again
			}
			err = ptrace(unix.PTRACE_SINGLESTEP, pid, pass)
		} else {
			err = ptrace(unix.PTRACE_CONT, pid, pass)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if why, ok := strings.CutPrefix(out.String(), "skip: "); ok {
		t.Skip(why)
	}
	want := fmt.Sprintf("adds %d, not by falling back 0\nswaps 0, not by falling back 0\npushes %[1]d, not by falling back 0\nwithin %[1]d, not by falling back 0\nswaps said 0\n", steppedAdds)
	if out.String() != want {
		t.Errorf("after %d steps:\n%swant\n%s", steps, out.String(), want)
	}
	t.Logf("%d steps", steps)
}

func ptrace(request, pid, signal int) error {
	_, _, errno := unix.Syscall6(unix.SYS_PTRACE, uintptr(request), uintptr(pid), 0, uintptr(signal), 0, 0)
	if errno != 0 {
		return fmt.Errorf("ptrace: %w", errno)
	}
	return nil
}
