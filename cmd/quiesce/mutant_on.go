//go:build quiesce_mutant

package main

// mutable reports whether package rcu can be given a fault.
const mutable = true
