package asm

import (
	"os"
	"runtime"

	"golang.org/x/sys/unix"
)

// possibleCPUs returns one more than the highest CPU number this machine can
// have. If the kernel does not say, CPUs above the guess fall back.
func possibleCPUs() int {
	if list, err := os.ReadFile("/sys/devices/system/cpu/possible"); err == nil {
		if n, err := parsePossible(string(list)); err == nil {
			return n
		}
	}
	n := runtime.NumCPU()
	var allowed unix.CPUSet
	if unix.SchedGetaffinity(0, &allowed) == nil {
		for cpu := range len(allowed) * 64 {
			if allowed.IsSet(cpu) {
				n = max(n, cpu+1)
			}
		}
	}
	return n
}
