package list_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/quiesce-go/quiesce/internal/buildtest"
	"github.com/quiesce-go/quiesce/rcu/list"
)

// TestTwins shows that the tests can fail: each is run against a List with a fault that it is to find, in
// a build of its own.
func TestTwins(t *testing.T) {
	if list.Mutant != "" {
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
	for _, twin := range []struct{ mutant, test, find string }{
		{"list-clearlink", "TestAll_Removed", "its own: the walk found [0 1],"},
		{"list-clearlink", "TestHammerWalk", "was seen 0 times"},
		{"list-keeplink", "TestModel", "broken invariant"},
		{"list-keeplink", "TestHammerWalk", "was freed in the section"},
		{"list-keeplink", "TestTorture", "FAILED: "},
		{"list-earlylink", "TestHammerWalk", "was seen 0 times"},
	} {
		t.Run(twin.mutant+"/"+twin.test, func(t *testing.T) {
			cmd := exec.Command(bin, "-test.timeout=60s", "-test.failfast", "-test.count=20", "-test.run=^"+twin.test+"$")
			cmd.Env = append(os.Environ(), "QUIESCE_MUTANT="+twin.mutant)
			if out, err := cmd.CombinedOutput(); err == nil || !strings.Contains(string(out), twin.find) {
				t.Errorf("%s did not find the fault %s: %v\n%s", twin.test, twin.mutant, err, out)
			}
		})
	}
}
