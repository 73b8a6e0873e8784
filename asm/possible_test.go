package asm

import (
	"strings"
	"testing"
)

// TestFault_P3: lists with holes, and lists that are none.
func TestFault_P3(t *testing.T) {
	for list, want := range map[string]int{
		"0":              1,
		"0\n":            1,
		"0-3\n":          4,
		"0-63,72-127":    128,
		"1,3-5":          6,
		"4095-4097":      4098,
		"72-127,0-63":    128,
		"65535":          65536,
		"0-8191":         8192,
		"0,1,2,3,4,5,63": 64,
	} {
		if got, err := parsePossible(list); got != want || err != nil {
			t.Errorf("%q: %d, %v; want %d", list, got, err, want)
		}
	}
	for _, list := range []string{
		"", "\n", "\n\n", "0-", "-3", "-", ",", "0,", ",0", "3-1", "0--1", "0-3-5", " 0", "0 ", "+1", "0x3", "1e3", "0-3\n\n",
		"garbage", "\x00", "65536", "0-65536", "4294967296", "99999999999999999999", "0-18446744073709551615",
		strings.Repeat("0,", 4096), strings.Repeat("7", 8192), strings.Repeat("\n", 8192),
	} {
		if got, err := parsePossible(list); got != 0 || err == nil || !strings.HasPrefix(err.Error(), "asm: ") {
			t.Errorf("%.20q: %d, %v; want an error", list, got, err)
		}
	}
	if columns < 1 || columns > maxColumns {
		t.Errorf("%d columns", columns)
	}
}

func FuzzParsePossible(f *testing.F) {
	for _, s := range []string{"0-63,72-127", "0", "1,3-5", "0-3\n", "", "0-", "4095-4097"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, list string) {
		n, err := parsePossible(list)
		if (err == nil) != (n > 0) || n > 1<<16 {
			t.Errorf("%q: %d, %v", list, n, err)
		}
	})
}
