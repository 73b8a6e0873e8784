package idr_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/quiesce-go/quiesce/internal/buildtest"
)

// TestTwins shows that the tests can fail: each is run against an IDR with a fault that it is to
// find, in a build of its own.
func TestTwins(t *testing.T) {
	w := buildtest.BuildTwins(t, false)
	tests := make(map[string]bool)
	for _, twin := range []struct{ mutant, test, find string }{
		{"idr-reuseslots", "TestParked", "a parked reader finds"},
		{"idr-reuseslots", "TestHammerFind", "gave"},
		{"idr-clearinner", "TestParked", "a parked reader finds"},
		{"idr-nofill", "TestModel", "seed"},
		{"idr-nofill", "TestHammerGrow", "is missing"},
		{"idr-noopen", "TestModel", "seed"},
		{"idr-noopen", "TestAllocRange_Full", "no free id"},
		{"idr-notheld", "TestModel", "seed"},
		{"idr-notheld", "TestHammerAlloc", ""},
		{"idr-retirenow", "TestHammerRetire", "was freed in the section"},
		{"idr-earlyid", "TestHammerRetire", "before its last thing was freed"},
		{"idr-cursor", "TestFault_I3", "no free id"},
		{"idr-nextends", "TestFault_I2", "gave"},
		{"idr-racyswap", "TestFault_I10/linear", "not linearizable"},
		{"idr-racyswap", "TestLinear", "not linearizable"},
		{"idr-noopen", "TestSuite_IDAFull", "want 70000"},
		{"idr-partial", "TestIDA_AllocN", "Len was"},
		{"idr-partial", "TestFault_I7", "a failed batch"},
		{"idr-dropchunk", "TestModelIDA", "seed"},
		{"idr-dropchunk", "TestHammerIDA", ""},
		{"idr-sameseq", "TestModelRegistry", "seed"},
		{"idr-sameseq", "TestHammerRegistry", "after its removal|found the thing of|is not to be had"},
		{"idr-releasenow", "TestHammerRegistry", "was released in use|is locked twice|found the thing of"},
		{"idr-revive", "TestModelRegistry", "seed"},
		{"idr-revive", "TestHammerRegistry", ""},
		{"idr-lockblind", "TestModelRegistry", "seed"},
		{"idr-lockblind", "TestHammerRegistry_Lock", "was got"},
	} {
		t.Run(twin.mutant+"/"+twin.test, func(t *testing.T) {
			// It gets some tries, for what is found may depend on who runs when.
			w.MustFind(t, twin.mutant, twin.test, twin.find, "-test.timeout=60s", "-test.short", "-test.count=100")
		})
		name, _, _ := strings.Cut(twin.test, "/")
		tests[name] = true
	}
	// The same tests find nothing in the same build without a fault.
	w.MustPass(t, "("+strings.Join(slices.Collect(maps.Keys(tests)), "|")+")", "-test.timeout=60s", "-test.short")
}
