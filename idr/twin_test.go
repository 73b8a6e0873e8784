package idr_test

import (
	"maps"
	"slices"
	"strconv"
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
		{"idr-reuseslots", "TestHammerPairs/procs=[24]", "is stale|is lost"},
		{"idr-retirenow", "TestHammerPairs", "is stale|is lost"},
		{"idr-earlyid", "TestHammerPairs", "before its last thing was freed"},
		{"idr-nofill", "TestModel", "seed"},
		{"idr-nofill", "TestHammerGrow", "is missing"},
		{"idr-noopen", "TestModel", "seed"},
		{"idr-noopen", "TestAllocRange_Full", "no free id"},
		{"idr-notheld", "TestModel", "seed"},
		{"idr-notheld", "FuzzIDR", "the calls were"}, // by its seeds
		{"idr-partial", "FuzzIDA", "the calls were"},
		{"idr-revive", "FuzzRegistry", "the calls were"},
		{"idr-notheld", "TestHammerAlloc", ""},
		{"idr-retirenow", "TestHammerRetire", "was freed in the section"},
		{"idr-earlyid", "TestHammerRetire", "before its last thing was freed"},
		{"idr-truncate", "TestFault_I1", "got "},
		{"idr-truncate", "TestFault_I8", "got "},
		{"idr-truncate", "TestSuite_Edges", "got "},
		{"idr-cursor", "TestFault_I3", "no free id"},
		{"idr-wraperror", "TestFault_I4", "no free id"},
		{"idr-wraperror", "TestSuite_Cyclic", "no free id"},
		{"idr-freetwice", "TestFault_I5", "Len 0, want 1"},
		{"idr-freetwice", "TestSuite_RemoveAbsent", "Len is"},
		{"idr-oneid", "TestFault_I6", "not a valid range"},
		{"idr-oneid", "TestSuite_Edges", "not a valid range"},
		{"idr-nextends", "TestFault_I2", "gave"},
		{"idr-racyswap", "TestFault_I10/linear", "not linearizable"},
		{"idr-racyswap", "TestLinear", "not linearizable|broken invariant"},
		{"idr-noopen", "TestSuite_IDAFull", "want 70000"},
		{"idr-partial", "TestIDA_AllocN", "Len was"},
		{"idr-partial", "TestFault_I7", "a failed batch"},
		{"idr-dropchunk", "TestModelIDA", "seed"},
		{"idr-dropchunk", "TestHammerIDA", ""},
		{"idr-sameseq", "TestModelRegistry", "seed"},
		{"idr-sameseq", "TestFault_I9", "Obtain"},
		{"idr-sameseq", "TestHammerRegistry", "after its removal|found the thing of|is not to be had"},
		{"idr-releasenow", "TestHammerRegistry", "was released in use|is locked twice|found the thing of"},
		{"idr-revive", "TestModelRegistry", "seed"},
		{"idr-revive", "TestHammerRegistry", ""},
		{"idr-lockblind", "TestModelRegistry", "seed"},
		{"idr-lockblind", "TestHammerRegistry_Lock", "was got"},
	} {
		t.Run(twin.mutant+"/"+twin.test, func(t *testing.T) {
			if twin.mutant == "idr-truncate" && strconv.IntSize == 32 {
				t.Skip("an int has no more than 32 bits here")
			}
			// It gets some tries, for what is found may depend on who runs when.
			w.MustFind(t, twin.mutant, twin.test, twin.find, "-test.timeout=60s", "-test.short", "-test.count=100", "-pairs=1000000")
		})
		name, _, _ := strings.Cut(twin.test, "/")
		tests[name] = true
	}
	// The same tests find nothing in the same build without a fault.
	w.MustPass(t, "("+strings.Join(slices.Collect(maps.Keys(tests)), "|")+")", "-test.timeout=60s", "-test.short")
}
