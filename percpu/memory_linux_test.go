package percpu_test

import (
	"fmt"
	"os"
	"testing"
)

// mapped and resident return the bytes of address space and of memory that the
// process has.
func resident(t *testing.T) int { return statm(t, 1) }

func statm(t *testing.T, field int) int {
	t.Helper()
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		t.Fatal(err)
	}
	var pages [2]int
	if _, err := fmt.Sscan(string(text), &pages[0], &pages[1]); err != nil {
		t.Fatal(err)
	}
	return pages[field] * os.Getpagesize()
}
