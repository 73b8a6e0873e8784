package rcutest

import (
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// signalThreads sends each thread of this process a signal that the Go runtime takes for nothing but an
// interruption. It aborts restartable sequences, as any interruption does.
func signalThreads() {
	dir, err := os.Open("/proc/self/task")
	if err != nil {
		return // No signals, then: the storm is a help, not a check.
	}
	defer dir.Close()
	names, _ := dir.Readdirnames(-1)
	pid := os.Getpid()
	for _, name := range names {
		if tid, err := strconv.Atoi(name); err == nil {
			_ = unix.Tgkill(pid, tid, unix.SIGURG) // It may have ended.
		}
	}
}
