package storm

import (
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func command(as string, args ...string) *exec.Cmd {
	cmd := exec.Command("/proc/self/exe", args...)
	if exe, err := os.Executable(); err == nil {
		cmd.Path = exe
	}
	cmd.Env = append(os.Environ(), role+"="+as)
	cmd.Stderr = os.Stderr
	return cmd
}

// attack starts a process that attacks this one. The function returned ends it
// and says what it did.
func (s *storm) attack(t testing.TB) (end func() string) {
	const none = "no signals and no moves"
	if s.parts&(Signals|Moves) == 0 {
		return func() string { return none }
	}
	if err := SelfTest(); err != nil {
		return func() string { return fmt.Sprintf("%s (%v)", none, err) }
	}
	var before unix.CPUSet
	if err := unix.SchedGetaffinity(0, &before); err != nil {
		t.Fatal("storm: ", err)
	}
	cmd := command("attack", strconv.Itoa(os.Getpid()), strconv.Itoa(int(s.parts)))
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal("storm: ", err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal("storm: ", err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal("storm: ", err)
	}
	late := time.AfterFunc(time.Minute, func() {
		status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", cmd.Process.Pid))
		t.Logf("storm: the attacker has not begun in a minute:\n%s", status)
		_ = cmd.Process.Kill()
	})
	first := make([]byte, 1)
	if _, err := io.ReadFull(out, first); err != nil { // it has begun
		t.Fatal("storm: the attacker does not begin: ", err)
	}
	late.Stop()
	return func() string {
		in.Close()
		what, _ := io.ReadAll(out)
		if err := cmd.Wait(); err != nil {
			t.Error("storm: the attacker: ", err)
		}
		if s.parts&Moves != 0 {
			// A thread that was started meanwhile has its parent's CPUs.
			for known := map[int]bool{}; ; {
				fresh := 0
				for _, tid := range threads(os.Getpid()) {
					if !known[tid] && unix.SchedSetaffinity(tid, &before) == nil {
						fresh++
					}
					known[tid] = true
				}
				if fresh == 0 {
					break
				}
			}
		}
		return string(what)
	}
}

func threads(pid int) (tids []int) {
	// Threads that end while the directory is read do no harm.
	dir, err := os.Open(filepath.Join("/proc", strconv.Itoa(pid), "task"))
	if err != nil {
		return nil
	}
	defer dir.Close()
	names, _ := dir.Readdirnames(-1)
	for _, name := range names {
		if tid, err := strconv.Atoi(name); err == nil {
			tids = append(tids, tid)
		}
	}
	return tids
}

// attackMain attacks the process that its arguments name until its standard
// input ends.
func attackMain() {
	pid, _ := strconv.Atoi(os.Args[1])
	parts, _ := strconv.Atoi(os.Args[2])
	var over atomic.Bool
	go func() {
		fmt.Print(".")
		io.Copy(io.Discard, os.Stdin)
		over.Store(true)
	}()

	runtime.LockOSThread()
	_ = unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0) // sleep for as long as asked, not 50 us more
	var all unix.CPUSet
	_ = unix.SchedGetaffinity(0, &all)
	var cpus []int
	for cpu := range len(all) * 64 {
		if all.IsSet(cpu) {
			cpus = append(cpus, cpu)
		}
	}
	var tids []int
	var listed time.Time
	signals, moves := 0, 0
	start := time.Now()
	for !over.Load() {
		if time.Since(listed) > time.Millisecond/2 {
			tids, listed = threads(pid), time.Now()
		}
		for _, tid := range tids {
			if Part(parts)&Signals != 0 && unix.Tgkill(pid, tid, unix.SIGURG) == nil {
				signals++
			}
			if Part(parts)&Moves != 0 && rand.IntN(16) == 0 {
				to := all
				if rand.IntN(4) != 0 {
					to.Zero()
					to.Set(cpus[rand.IntN(len(cpus))])
				}
				if unix.SchedSetaffinity(tid, &to) == nil {
					moves++
				}
			}
		}
		_ = unix.Nanosleep(&unix.Timespec{Nsec: 5_000}, nil)
	}
	took := time.Since(start)
	fmt.Print(strings.Join([]string{
		fmt.Sprintf("%d signals and %d moves", signals, moves),
		fmt.Sprintf("in %v, to up to %d threads", took.Round(time.Millisecond), len(tids)),
	}, " "))
}
