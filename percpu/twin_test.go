package percpu

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/quiesce-go/quiesce/asm"
	"github.com/quiesce-go/quiesce/internal/buildtest"
)

// TestTwins shows that the tests can fail: each is run in a build of its own with the fault that it
// is about, and must find it.
func TestTwins(t *testing.T) {
	if mutant != mutantNone {
		t.Skip("this is a twin")
	}
	if runtime.NumCPU() < 2 {
		t.Skip("the faults need two processors")
	}
	goTool, err := exec.LookPath("go")
	if err != nil {
		t.Skip("no go command, which builds the twins")
	}
	bin := filepath.Join(t.TempDir(), "twin.test")
	args := []string{"test", "-c", "-tags", "quiesce_mutant", "-o", bin}
	if raceEnabled {
		args = append(args, "-race")
	}
	if out, err := exec.Command(goTool, append(args, ".")...).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	buildtest.NeedsRun(t, bin)
	run := func(mutant, test string) (string, error) {
		cmd := exec.Command(bin, "-test.short", "-test.timeout=240s", "-test.run=^"+test+"$")
		cmd.Env = append(os.Environ(), "QUIESCE_MUTANT="+mutant)
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	if out, err := run("", "TestHammerPool"); err != nil {
		t.Fatalf("the build fails without a fault: %v\n%s", err, out)
	}
	for _, twin := range []struct {
		mutant, test string
		find         string // in the output
		can          bool   // whether this build has the fault
	}{
		{mutantNoStop, "TestHammerPool", "had two owners", poolStacks},
		{mutantNoFence, "TestHammerRef", "--- FAIL", asm.Gates()},
		{mutantNoLook, "TestHammerRWMutex", "--- FAIL", asm.Gates()},
		{mutantNoLock, "TestHammerLocal", "--- FAIL", true},
		{mutantAnyRef, "TestRef_Zero", "got panic <nil>", true},
		{mutantForget, "TestLocal_OnlyKnownToDo", "was collected", true},
	} {
		t.Run(twin.mutant+"/"+twin.test, func(t *testing.T) {
			if !twin.can {
				t.Skip("this build does not do what the fault leaves out")
			}
			if out, err := run(twin.mutant, twin.test); err == nil || !strings.Contains(out, twin.find) {
				t.Errorf("%s did not find the fault %s: %v\n%s", twin.test, twin.mutant, err, out)
			}
		})
	}
}
