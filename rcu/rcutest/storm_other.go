//go:build !linux

package rcutest

func signalThreads() {}
