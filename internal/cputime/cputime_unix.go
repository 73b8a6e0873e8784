//go:build unix

package cputime

import (
	"time"

	"golang.org/x/sys/unix"
)

// Used returns how much CPU time the program has used, in user mode and in the kernel.
func Used() time.Duration {
	var u unix.Rusage
	if unix.Getrusage(unix.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
