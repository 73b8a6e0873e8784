package percpu

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/quiesce-go/quiesce/asm"
	"github.com/quiesce-go/quiesce/internal/buildtest"
	"github.com/quiesce-go/quiesce/internal/patience"
)

// TestRWMutex_SyncTests runs the tests that the Go distribution has for sync.RWMutex on ours. They must fail with
// the twin nolook.
func TestRWMutex_SyncTests(t *testing.T) {
	path, err := exec.LookPath("go")
	if err != nil {
		t.Skip("needs the go command: ", err)
	}
	root, err := exec.Command(path, "env", "GOROOT").Output()
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(root)), "src", "sync", "rwmutex_test.go"))
	if err != nil {
		t.Skip("needs the Go distribution's sources: ", err)
	}
	const dot = "\t. \"sync\"\n"
	if strings.Count(string(text), dot) != 1 || !strings.Contains(string(text), "var rl Locker") {
		t.Skip("this Go distribution's tests look different")
	}
	tests := strings.Replace(string(text), dot, "\t. \"github.com/quiesce-go/quiesce/percpu\"\n\t\"sync\"\n", 1)
	tests = strings.Replace(tests, "var rl Locker", "var rl sync.Locker", 1)

	// The compiler sees them in a directory of this module, where there is none.
	dir := t.TempDir()
	file, overlay, bin := filepath.Join(dir, "rwmutex_test.go"), filepath.Join(dir, "overlay.json"), filepath.Join(dir, "sync.test.exe")
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	replace, err := json.Marshal(map[string]map[string]string{"Replace": {filepath.Join(here, "synctests", "rwmutex_test.go"): file}})
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string][]byte{file: []byte(tests), overlay: replace} {
		if err := os.WriteFile(name, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	args := []string{"test", "-c", "-vet=off", "-tags", "quiesce_mutant", "-overlay", overlay, "-o", bin}
	if raceEnabled {
		args = append(args, "-race")
	}
	if out, err := exec.Command(path, append(args, "./synctests")...).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	buildtest.NeedsRun(t, bin)
	run := func(mutant string) (out string, err error) {
		cmd := exec.Command(bin, "-test.v", "-test.timeout=240s")
		cmd.Env = append(os.Environ(), "QUIESCE_MUTANT="+mutant)
		b, err := cmd.CombinedOutput()
		return string(b), err
	}
	out, err := run(mutantNone)
	if err != nil || strings.Count(out, "--- PASS: ") < 3 {
		t.Errorf("%v\n%s", err, out)
	}
	t.Log(out)
	if !asm.Gates() || runtime.NumCPU() < 2 {
		return // the twin is as good
	}
	patience.Until(t, "they fail if readers do not look for a writer", func() (any, bool) {
		out, err := run(mutantNoLook)
		if err != nil {
			return err, true
		}
		return out, false
	})
}
