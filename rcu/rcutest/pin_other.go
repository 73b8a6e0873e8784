//go:build !linux

package rcutest

// pin would keep the calling goroutine on one CPU.
func pin(n int) {}
