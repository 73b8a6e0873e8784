package asm

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/quiesce-go/quiesce/internal/storm"
)

// What a process decides once, at first use, is tested in processes of their
// own: the test binary starts itself again, with the name of a function in
// childVariable, and TestMain runs that before anything has used the package.

const childVariable = "QUIESCE_ASM_CHILD"

// children are the functions. What one prints is what its test looks at.
var children = map[string]func(arg string){}

func TestMain(m *testing.M) {
	if name, arg, _ := strings.Cut(os.Getenv(childVariable), " "); name != "" {
		children[name](arg)
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// child runs the named function in a new process and returns what it printed.
// The process has to end by itself and well: a crash is a failure whatever was
// printed.
func child(t *testing.T, name, arg string, env ...string) string {
	t.Helper()
	cmd := childCommand(t, name, arg, env...)
	out, err := cmd.CombinedOutput()
	if strings.Contains(string(out), "Fatal glibc error: rseq registration failed") {
		t.Skip("glibc ends a process of its own accord when the kernel refuses rseq(2) to a thread and did not to the first")
	}
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", name, arg, err, out)
	}
	return string(out)
}

func childCommand(t *testing.T, name, arg string, env ...string) *exec.Cmd {
	t.Helper()
	needChildren(t)
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe)
	cmd.Env = append(append(os.Environ(), childVariable+"="+name+" "+arg), env...)
	return cmd
}

func needChildren(t *testing.T) {
	t.Helper()
	if err := storm.SelfTest(); err != nil {
		t.Skip("needs processes of its own: ", err)
	}
}
