package rcutest

import (
	"runtime"

	"golang.org/x/sys/unix"
)

// pin keeps the calling goroutine on one CPU until it ends: on the nth of those that it may use, where n goes round.
// That is a help, not a check, so it may fail.
func pin(n int) {
	runtime.LockOSThread() // never undone: the thread ends with the goroutine
	var may, one unix.CPUSet
	if unix.SchedGetaffinity(0, &may) != nil {
		return
	}
	n %= may.Count()
	for cpu := 0; ; cpu++ {
		if !may.IsSet(cpu) {
			continue
		}
		if n == 0 {
			one.Set(cpu)
			break
		}
		n--
	}
	_ = unix.SchedSetaffinity(0, &one)
}
