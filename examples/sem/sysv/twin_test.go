package sysv

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/quiesce-go/quiesce/internal/buildtest"
)

// TestTwins shows that the tests can fail: with an idr that frees objects without a grace period, and
// with one whose locks do not tell that the object was removed.
func TestTwins(t *testing.T) {
	const env = "QUIESCE_MUTANT"
	if os.Getenv(env) != "" {
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
	for _, twin := range []struct{ mutant, test string }{
		{"idr-releasenow", "TestRemovedMeanwhile"},
		{"idr-releasenow", "TestHammer"},
		{"idr-lockblind", "TestRemovedMeanwhile"},
	} {
		cmd := exec.Command(bin, "-test.run=^"+twin.test+"$", "-test.count=20", "-test.failfast", "-test.timeout=60s")
		cmd.Env = append(os.Environ(), env+"="+twin.mutant)
		if out, err := cmd.CombinedOutput(); err == nil {
			t.Errorf("%s did not find the fault %s:\n%s", twin.test, twin.mutant, out)
		}
	}
}
