package sysv

import (
	"testing"

	"github.com/quiesce-go/quiesce/internal/buildtest"
)

// TestTwins shows that the tests can fail: with an idr that frees objects without a grace period, and
// with one whose locks do not tell that the object was removed.
func TestTwins(t *testing.T) {
	w := buildtest.BuildTwins(t, false)
	for _, twin := range []struct{ mutant, test string }{
		{"idr-releasenow", "TestRemovedMeanwhile"},
		{"idr-releasenow", "TestHammer"},
		{"idr-lockblind", "TestRemovedMeanwhile"},
	} {
		w.MustFind(t, twin.mutant, twin.test, "", "-test.count=20", "-test.timeout=60s")
	}
}
