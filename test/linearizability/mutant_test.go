package linearizability

import (
	"testing"

	"github.com/quiesce-go/quiesce/internal/buildtest"
)

// TestMutants shows that histories are refuted that should be: those of package idr with a fault, in
// a build of its own.
func TestMutants(t *testing.T) {
	w := buildtest.BuildTwins(t, false)
	for _, m := range []struct{ mutant, test string }{
		{"idr-racyswap", "TestIDR"},
		{"idr-cursor", "TestIDR"},
		{"idr-partial", "TestIDA"},
		{"idr-sameseq", "TestRegistry"},
		{"idr-lockblind", "TestRegistry"},
	} {
		t.Run(m.mutant, func(t *testing.T) {
			w.MustFind(t, m.mutant, m.test, "not linearizable", "-runs=2000", "-test.timeout=120s")
		})
	}
}
