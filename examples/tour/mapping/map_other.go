//go:build !(linux || darwin || freebsd)

package main

import "os"

// Where files are not mapped so easily, this stands in for it: who reads too late reads zeros.

func mapFile(name string) ([]byte, error) { return os.ReadFile(name) }

func unmap(b []byte) error {
	clear(b[1:])
	return nil
}
