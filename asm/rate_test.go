package asm

import (
	"fmt"
	"testing"
	"time"

	"github.com/quiesce-go/quiesce/internal/patience"
)

// TestCyclesPerSecond: it tells the length of a sleep, as far as the process is not
// interrupted between the looks at the two clocks.
func TestCyclesPerSecond(t *testing.T) {
	patience.Until(t, "right to 2 %", func() (any, bool) {
		rate := CyclesPerSecond()
		from, start := CyclesOrdered(), time.Now()
		time.Sleep(20 * time.Millisecond)
		to, took := CyclesOrdered(), time.Since(start)
		said := time.Duration(float64(to-from) / rate * float64(time.Second))
		off := float64(said)/float64(took) - 1
		return fmt.Sprintf("off by %.1f %%", 100*off), off > -0.02 && off < 0.02
	})
}
