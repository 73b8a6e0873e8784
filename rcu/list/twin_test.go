package list_test

import (
	"testing"

	"github.com/quiesce-go/quiesce/internal/buildtest"
)

// TestTwins shows that the tests can fail: each is run against a List with a fault that it is to find, in
// a build of its own.
func TestTwins(t *testing.T) {
	w := buildtest.BuildTwins(t, false)
	for _, twin := range []struct{ mutant, test, find string }{
		{"list-clearlink", "TestAll_Removed", `its own: the walk found \[0 1\],`},
		{"list-clearlink", "TestHammerWalk", "was seen 0 times"},
		{"list-keeplink", "TestModel", "broken invariant"},
		{"list-keeplink", "TestHammerWalk", "was freed in the section"},
		{"list-keeplink", "TestTorture", "FAILED: "},
		{"list-earlylink", "TestHammerWalk", "was seen 0 times"},
	} {
		t.Run(twin.mutant+"/"+twin.test, func(t *testing.T) {
			w.MustFind(t, twin.mutant, twin.test, twin.find, "-test.timeout=60s", "-test.count=20")
		})
	}
}
