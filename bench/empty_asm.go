//go:build (amd64 || arm64) && gc && !purego

package main

func empty()
