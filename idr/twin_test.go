package idr_test

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/quiesce-go/quiesce/idr"
	"github.com/quiesce-go/quiesce/internal/buildtest"
)

// TestTwins shows that the tests can fail: each is run against an IDR with a fault that it is to
// find, in a build of its own.
func TestTwins(t *testing.T) {
	if idr.Mutant != "" {
		t.Skip("this is a twin")
	}
	goTool, err := exec.LookPath("go")
	if err != nil {
		t.Skipf("no go command to build the twins with: %v", err)
	}
	bin := filepath.Join(t.TempDir(), "twin.test")
	if out, err := exec.Command(goTool, "test", "-c", "-tags", "quiesce_mutant", "-o", bin, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	buildtest.NeedsRun(t, bin)
	run := func(mutant, test, tries string) (string, error) {
		cmd := exec.Command(bin, "-test.timeout=60s", "-test.failfast", "-test.short", "-test.count="+tries, "-test.run="+test)
		cmd.Env = append(os.Environ(), "QUIESCE_MUTANT="+mutant)
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
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
			if out, err := run(twin.mutant, "^"+twin.test+"$", "100"); err == nil || !regexp.MustCompile(twin.find).MatchString(out) {
				t.Errorf("%s did not find the fault %s: %v\n%s", twin.test, twin.mutant, err, out)
			}
		})
		name, _, _ := strings.Cut(twin.test, "/")
		tests[name] = true
	}
	// The same tests find nothing in the same build without a fault.
	all := "^(" + strings.Join(slices.Collect(maps.Keys(tests)), "|") + ")$"
	if out, err := run("", all, "1"); err != nil {
		t.Errorf("a test fails without a fault: %v\n%s", err, out)
	}
}
