package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"github.com/quiesce-go/quiesce/internal/buildtest"
	"github.com/quiesce-go/quiesce/internal/patience"
	"github.com/quiesce-go/quiesce/internal/tier"
)

func TestTorture(t *testing.T) {
	before := tier.Current()
	for _, args := range [][]string{
		{"-seed", "7"},
		{"-tier", "shared", "-readers", "guard", "-calm"},
		{"-tier", "all", "-readers", "reader", "-sleep", "0", "-patience", "1m"},
		{"-debug", "-lazy", "10ms", "-pending", "100"},
	} {
		var out, errs bytes.Buffer
		args = append([]string{"torture", "-time", "200ms"}, args...)
		if code := run(args, &out, &errs); code != 0 {
			t.Errorf("%q: exit status %d, stderr %q", args, code, errs.String())
		}
		t.Logf("%q\n%s%s", args, errs.String(), out.String())
		if !regexp.MustCompile(`ages:  0: [1-9]\d* 1: \d+ 2: 0 3: 0 4: 0\n$`).MatchString(out.String()) {
			t.Errorf("%q: no histogram in %q", args, out.String())
		}
		if args[3] == "-seed" && !strings.HasPrefix(out.String(), "seed 7, ") {
			t.Errorf("seed 7 became %q", out.String())
		}
		if now := tier.Current(); now != before {
			t.Errorf("%q: the tier is %v, it was %v", args, now, before)
		}
	}
}

func TestTorture_Misuse(t *testing.T) {
	for _, args := range [][]string{
		{"-time", "soon"}, {"-tier", "best"}, {"-readers", "none"}, {"extra"}, {"-patience", "0"}, {"-patience", "1s", "-sleep", "2s"},
		{"-mutant", "nosuch"}, {"-mutant", "join"},
	} {
		var out, errs bytes.Buffer
		if code := run(append([]string{"torture"}, args...), &out, &errs); code != 2 {
			t.Errorf("%q: exit status %d, want 2", args, code)
		}
		if out.Len() != 0 || !strings.HasPrefix(errs.String(), "quiesce: torture: ") || !strings.Contains(errs.String(), usage) {
			t.Errorf("%q: stdout %q, stderr %q; want a reason and the usage on stderr alone", args, out.String(), errs.String())
		}
	}
}

// TestTwins shows that torture finds the faults that it can see: it runs against an engine with each.
func TestTwins(t *testing.T) {
	goTool, err := exec.LookPath("go")
	if err != nil {
		t.Skipf("no go command to build the twins with: %v", err)
	}
	bin := filepath.Join(t.TempDir(), "quiesce.exe")
	build := []string{"build", "-tags", "quiesce_mutant", "-o", bin}
	race := howBuilt().race
	if race {
		build = append(build, "-race")
	}
	if out, err := exec.Command(goTool, append(build, ".")...).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	buildtest.NeedsRun(t, bin)
	for _, twin := range []struct {
		mutant string
		args   string // which make it likely
		find   string
	}{
		{"join", "", "FAILED: "},
		{"skipslot", "", "FAILED: "},
		{"nestrefresh", "-readers reader", "FAILED: "},
		{"gpbarrier", "", "Barrier returned before a callback had run"},
		{"earlyfinish", "", "Barrier returned before a callback had run"},
		{"lostbatch", "-patience 1s", "FAILED: "},
		{"noflip", "-patience 1s -readers guard", "is stuck for 1s in"},
		{"lockedregister", "-patience 1s", "is stuck for 1s in"},
		{"lockedcall", "-patience 1s", "is stuck for 1s in"},
		{"nodeadlock", "-patience 1s", "is stuck for 1s in"},
		{"immortal", "-patience 1s", "is stuck for 1s in"},
		{"onephase", "-readers guard", "FAILED: "},
		{"nofence", "-readers reader", "FAILED: "},
		{"noedge", "", "FAILED: "},
	} {
		t.Run(twin.mutant, func(t *testing.T) {
			if race && twin.mutant != "join" && twin.mutant != "noedge" {
				t.Skip("race builds take too long, or do not have it")
			}
			switch twin.mutant {
			case "noedge":
				if !race {
					t.Skip("only the race detector finds it")
				}
			case "nofence":
				if runtime.GOARCH != "amd64" || runtime.NumCPU() < 2 {
					t.Skip("readers' own stores are fences in this build, or there is one processor")
				}
			case "lockedregister", "lockedcall", "lostbatch", "nodeadlock", "immortal":
				if testing.Short() {
					t.Skip("it takes seconds until it is stuck")
				}
			}
			if strings.Contains(twin.args, "-patience") {
				t.Parallel() // it waits until what is stuck has been so for long enough
			}
			patience.Until(t, "torture finds the fault "+twin.mutant, func() (any, bool) {
				// It ends as soon as it has found something.
				cmd := exec.Command(bin, append([]string{"torture", "-time", "1m", "-mutant", twin.mutant}, strings.Fields(twin.args)...)...)
				cmd.Env = append(os.Environ(), "GORACE=halt_on_error=1")
				out, err := cmd.CombinedOutput()
				found := strings.Contains(string(out), twin.find) || race && strings.Contains(string(out), "DATA RACE")
				if err != nil && found {
					return err, true
				}
				return fmt.Sprintf("%v\n%s", err, out), false
			})
		})
	}
}
