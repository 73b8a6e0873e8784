//go:build linux && !android && gc && !purego && !race && !go1.28

package asm

import "testing"

// TestCheckCalls: another order of the arguments or results is found out.
func TestCheckCalls(t *testing.T) {
	if !calls {
		t.Error("arguments are passed in an unknown way")
	}
	right := byRegisters[checkCall](&checkCode)
	for name, f := range map[string]checkCall{
		"arguments":      func(a, b, c, d, e int) (int, int, int) { return right(b, a, c, d, e) },
		"last arguments": func(a, b, c, d, e int) (int, int, int) { return right(a, b, c, e, d) },
		"results":        func(a, b, c, d, e int) (int, int, int) { a, b, c = right(a, b, c, d, e); return a, c, b },
		"nothing":        func(a, b, c, d, e int) (int, int, int) { return a, b, c },
	} {
		if checkCalls(f) {
			t.Errorf("%s in another order are taken as they come", name)
		}
	}
}
