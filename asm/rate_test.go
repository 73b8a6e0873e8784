package asm

import (
	"testing"
	"time"
)

// TestCyclesPerSecond: it tells the length of a sleep, as far as the process is not
// interrupted between the looks at the two clocks.
func TestCyclesPerSecond(t *testing.T) {
	var off float64
	for range 10 {
		rate := CyclesPerSecond()
		from, start := CyclesOrdered(), time.Now()
		time.Sleep(20 * time.Millisecond)
		to, took := CyclesOrdered(), time.Since(start)
		said := time.Duration(float64(to-from) / rate * float64(time.Second))
		if off = float64(said)/float64(took) - 1; off > -0.02 && off < 0.02 {
			return
		}
	}
	t.Errorf("off by %.1f %% ten times", 100*off)
}
