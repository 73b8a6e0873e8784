//go:build linux && !android && gc && !purego && !race && !go1.28

package asm

import "testing"

// TestCheckCalls: another order of the arguments or results is found out.
func TestCheckCalls(t *testing.T) {
	if !calls {
		t.Error("arguments are passed in an unknown way")
	}
	right := byRegisters[func(a, b, c int) (int, int, int)](&checkCode)
	for name, f := range map[string]func(a, b, c int) (int, int, int){
		"arguments": func(a, b, c int) (int, int, int) { return right(b, a, c) },
		"results":   func(a, b, c int) (int, int, int) { a, b, c = right(a, b, c); return a, c, b },
		"nothing":   func(a, b, c int) (int, int, int) { return a, b, c },
	} {
		if checkCalls(f) {
			t.Errorf("%s in another order are taken as they come", name)
		}
	}
}
