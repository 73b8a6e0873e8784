package buildtest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/quiesce-go/quiesce/internal/patience"
)

// mutantVariable names the deliberate fault of a build with the tag quiesce_mutant.
const mutantVariable = "QUIESCE_MUTANT"

// Twins is a build of the package under test with the tag quiesce_mutant. What it runs
// has a fault, which its tests are to find: a test that cannot fail shows nothing.
type Twins struct {
	bin string
}

// BuildTwins builds them, with the race detector if race says so. It skips t in a twin,
// without the go command, and where the kernel cannot run what was built.
func BuildTwins(t testing.TB, race bool) Twins {
	t.Helper()
	if name := os.Getenv(mutantVariable); name != "" {
		t.Skipf("buildtest: this is the twin %s", name)
	}
	path, err := exec.LookPath("go")
	if err != nil {
		t.Skipf("buildtest: needs the go command to build the twins: %v", err)
	}
	w := Twins{filepath.Join(t.TempDir(), "twin.test.exe")}
	args := []string{"test", "-c", "-tags", "quiesce_mutant", "-o", w.bin}
	if race {
		args = append(args, "-race")
	}
	if out, err := exec.Command(path, append(args, ".")...).CombinedOutput(); err != nil {
		t.Fatalf("buildtest: %v\n%s", err, out)
	}
	NeedsRun(t, w.bin)
	return w
}

// run runs the tests that the regular expression names, in four minutes at most, with
// further flags of a test binary. The fault "" is none.
func (w Twins) run(mutant, test string, flags []string) (out string, err error) {
	cmd := exec.Command(w.bin, append([]string{"-test.timeout=240s", "-test.failfast", "-test.run=^" + test + "$"}, flags...)...)
	cmd.Env = append(os.Environ(), mutantVariable+"="+mutant)
	b, err := cmd.CombinedOutput()
	return string(b), err
}

// MustFind fails t unless test fails with the fault, and prints what the regular
// expression find matches. Whether a fault shows may depend on who runs when: the test
// gets further tries (see package patience).
func (w Twins) MustFind(t testing.TB, mutant, test, find string, flags ...string) {
	t.Helper()
	pattern := regexp.MustCompile(find)
	patience.Until(t, test+" finds the fault "+mutant, func() (any, bool) {
		out, err := w.run(mutant, test, flags)
		if err != nil && pattern.MatchString(out) {
			return err, true
		}
		return fmt.Sprintf("%v\n%s", err, out), false
	})
}

// MustPass fails t unless test passes without a fault, in the same build.
func (w Twins) MustPass(t testing.TB, test string, flags ...string) {
	t.Helper()
	if out, err := w.run("", test, flags); err != nil {
		t.Errorf("%s fails without a fault: %v\n%s", test, err, out)
	}
}
