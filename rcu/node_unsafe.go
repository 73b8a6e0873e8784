package rcu

// This file uses unsafe to get from a Head to the struct that begins with it, which is
// what saves Call and Retire a closure per callback.

import "unsafe"

// A node is a Head with something to run. The Head must be first.
type node struct {
	Head
	runner runner
}

type runner interface{ run() }

type callback func()

func (f callback) run() { f() }

func newNode(r runner) *Head {
	n := &node{runner: r}
	return &n.Head
}

// runNode is the function of the Heads in nodes, and of no others.
func runNode(h *Head) { (*node)(unsafe.Pointer(h)).runner.run() }
