//go:build !((amd64 || arm64) && gc && !purego)

package main

//go:noinline
func empty() {}
