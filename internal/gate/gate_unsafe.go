// Package gate ties the slow path of asm.Gate, which is reached by a jump from
// assembly, to package percpu, which knows what to do there.
package gate

// This file uses unsafe for a pointer whose type only package percpu knows.

import "unsafe"

// Slow is set by package percpu before it makes a Gate. It is called with the
// address of the Gate and the arguments of the Add that could not be made.
var Slow func(g unsafe.Pointer, i int, delta int64)

// An Owner is what asm.Gate's Add wants to see. It does nothing, but outside of this
// module nobody can name it: a Gate whose slow path found something else behind it than
// percpu's types would damage that.
type Owner struct{}

// NoFence leaves the fence out of Gate.Shut. Only broken twins of package percpu,
// which exist to show that the tests can fail, set it.
var NoFence bool
