package percpu

// This file uses unsafe to find a stack with one load instead of two, which is a tenth
// of what Get takes: see docs/decisions.

import "unsafe"

// at returns the stack of P id, where first is that of P 0. The caller has compared id
// with how many there are.
func (first *poolStack[T]) at(id int) *poolStack[T] {
	return (*poolStack[T])(unsafe.Add(unsafe.Pointer(first), uintptr(id)*unsafe.Sizeof(*first)))
}
