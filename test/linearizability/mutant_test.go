package linearizability

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestMutants shows that histories are refuted that should be: those of package idr with a fault, in
// a build of its own.
func TestMutants(t *testing.T) {
	const env = "QUIESCE_MUTANT"
	if os.Getenv(env) != "" {
		t.Skip("this is a mutant")
	}
	goTool, err := exec.LookPath("go")
	if err != nil {
		t.Skipf("no go command to build the mutants with: %v", err)
	}
	bin := filepath.Join(t.TempDir(), "mutant.test")
	if out, err := exec.Command(goTool, "test", "-c", "-tags", "quiesce_mutant", "-o", bin, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, m := range []struct{ mutant, test string }{
		{"idr-racyswap", "TestIDR"},
		{"idr-cursor", "TestIDR"},
		{"idr-partial", "TestIDA"},
		{"idr-sameseq", "TestRegistry"},
		{"idr-lockblind", "TestRegistry"},
	} {
		t.Run(m.mutant, func(t *testing.T) {
			cmd := exec.Command(bin, "-test.run=^"+m.test+"$", "-test.failfast", "-runs=2000", "-test.timeout=120s")
			cmd.Env = append(os.Environ(), env+"="+m.mutant)
			if out, err := cmd.CombinedOutput(); err == nil || !strings.Contains(string(out), "not linearizable") {
				t.Errorf("not refuted: %v\n%s", err, out)
			}
		})
	}
}
