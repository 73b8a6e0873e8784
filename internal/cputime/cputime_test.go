package cputime

import (
	"testing"
	"time"
)

// TestUsed: who computes uses time, and not more than passes on all processors.
func TestUsed(t *testing.T) {
	if Used() == 0 {
		t.Skip("this system does not tell")
	}
	start, before := time.Now(), Used()
	for time.Since(start) < 10*time.Second && Used()-before < 20*time.Millisecond {
	}
	if d := Used() - before; d < 20*time.Millisecond || d > 256*time.Since(start) {
		t.Errorf("%v used in %v", d, time.Since(start))
	}
}
