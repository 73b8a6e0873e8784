package sysv

import (
	"testing"

	"github.com/quiesce-go/quiesce/internal/buildtest"
)

// TestTwins shows that the tests can fail: with an idr that frees objects without a grace period, with
// one whose locks do not tell that the object was removed, and with faults of this package.
func TestTwins(t *testing.T) {
	w := buildtest.BuildTwins(t, false)
	for _, twin := range []struct{ mutant, test, find string }{
		{"idr-releasenow", "TestRemovedMeanwhile", ""},
		{"idr-releasenow", "TestHammer", ""},
		{"idr-lockblind", "TestRemovedMeanwhile", ""},
		{mutantPartial, "TestHammer", "the sum of"},
		{mutantOpen, "TestErrors", "Stat(At)?, (denied|not permitted): a section is open"},
	} {
		w.MustFind(t, twin.mutant, twin.test, twin.find, "-test.count=20", "-test.timeout=60s")
	}
}
