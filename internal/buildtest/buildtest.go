// Package buildtest lets tests look at compiled code: whether a function still
// fits into the compiler's inlining budget, and which instructions it became.
//
// Use it for what the source alone does not promise, such as a method that has
// to inline to one call, a plain store that must stay inside its section, or a
// fence that must not disappear:
//
//	func TestReader_Compiled(t *testing.T) {
//		buildtest.Inlined(t, ".", "(*Reader).Lock", "(*Reader).Unlock")
//		code := buildtest.Disassemble(t, ".", `rcu\.sectionProbe$`)
//		if strings.Contains(code, "LOCK") { ... }
//	}
//
// A package is named as on the go command's line; "." is the package under
// test, since a test runs in its directory. Both functions build the package's
// test binary, so that code in _test.go files counts too: an instantiation of
// a generic type, or a caller kept by //go:noinline ("probe") that shows what a
// method becomes where it is inlined. The linker keeps only what something
// reaches, so a probe needs a caller, or a variable that holds it.
//
// What is built is the plain build for the platform the test runs on, whatever
// flags the test itself was built with: no tags and no -race. Settings of the
// form NAME=value change that: GOARCH=arm64 looks at another architecture from
// any machine, GOFLAGS=-tags=purego at a tag.
//
// Each call costs a build, which the go command caches, and some tenths of a
// second. Without the go command in PATH, as on an emulated machine, the test
// is skipped and says so.
package buildtest

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"syscall"
	"testing"
)

// Disassemble builds the test binary of package pkg and returns the
// disassembly, in the form of go tool objdump, of the symbols whose full name
// (import path, dot, name) the regular expression matches. It ends the test if
// the package does not build or no symbol matches, so what it returns is never
// empty. Each env setting, of the form NAME=value, changes the build.
func Disassemble(t testing.TB, pkg, symRegexp string, env ...string) string {
	t.Helper()
	bin := filepath.Join(t.TempDir(), "test.bin")
	build := command(t, env, "test", "-c", "-o", bin, pkg)
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("buildtest: %v: %v\n%s", build, err, out)
	}
	// The tool itself has to run here, so it never sees env.
	objdump := command(t, []string{"GOOS=", "GOARCH="}, "tool", "objdump", "-s", symRegexp, bin)
	out, err := objdump.CombinedOutput()
	if err != nil {
		t.Fatalf("buildtest: %v: %v\n%s", objdump, err, out)
	}
	if !strings.HasPrefix(string(out), "TEXT ") {
		t.Fatalf("buildtest: no symbol of the test binary of %s matches %q (does anything reach it?)\n%s", pkg, symRegexp, out)
	}
	return string(out)
}

var callLine = regexp.MustCompile(`(?m)\b(?:MOVQ|MOVD) (\S+)\(SB\), (?:DX|R26)\b|\b(?:CALL) (\S+)`)

// Calls returns what the code that Disassemble gave for a function calls, in the order
// of the code, but for the function that grows the stack. Of a call of a func value it
// has the variable that the value was taken from.
func Calls(code string) (names []string) {
	variable := ""
	for _, m := range callLine.FindAllStringSubmatch(code, -1) {
		switch name := m[2]; {
		case name == "":
			variable = m[1]
		case strings.HasPrefix(name, "runtime.morestack"):
		case !strings.HasSuffix(name, "(SB)"): // by a register
			names = append(names, variable)
		default:
			names = append(names, name)
		}
	}
	return names
}

// Inlined fails the test for each of the named functions of package pkg that
// the compiler cannot inline, with the compiler's reason. A name is written as
// the compiler prints it, without type arguments: "New", "(*Counter).Add",
// "Guard.Unlock", "(*Value).Load". A generic function counts as inlined if all
// of its instantiations in the package and its tests are; at least one is
// needed.
func Inlined(t testing.TB, pkg string, names ...string) {
	t.Helper()
	build := command(t, nil, "test", "-c", "-o", os.DevNull, "-gcflags=-m=2", pkg)
	out, err := build.CombinedOutput()
	if err != nil {
		t.Fatalf("buildtest: %v: %v\n%s", build, err, out)
	}
	verdicts := parseInlining(string(out))
	for _, name := range names {
		switch v, ok := verdicts[name]; {
		case !ok:
			t.Errorf("buildtest: the compiler says nothing about inlining %s of %s: no such function, or no instantiation of it", name, pkg)
		case v != "":
			t.Errorf("buildtest: %s of %s: %s", name, pkg, v)
		}
	}
}

var inlineLine = regexp.MustCompile(`^[^ ]+:\d+:\d+: (can|cannot) inline (.+)$`)

// qualifier is the package's name that the compiler puts before an
// instantiation made in another package, the external test package above all.
var qualifier = regexp.MustCompile(`^\w+\.\(\*`)

// parseInlining reads what the compiler prints under -m=2. It maps the name of
// each function to why it cannot be inlined, or to "" if it can.
func parseInlining(out string) map[string]string {
	verdicts := make(map[string]string)
	for line := range strings.Lines(out) {
		m := inlineLine.FindStringSubmatch(strings.TrimSpace(line))
		if m == nil {
			continue
		}
		// "can inline NAME with cost N as: SOURCE", "cannot inline NAME: REASON".
		rest := dropTypeArgs(m[2])
		name, _, _ := strings.Cut(rest, " with cost ")
		why := ""
		if m[1] == "cannot" {
			name, _, _ = strings.Cut(rest, ": ")
			why = m[1] + " inline " + m[2]
		}
		if qualifier.MatchString(name) {
			_, name, _ = strings.Cut(name, ".")
		}
		if verdicts[name] == "" {
			verdicts[name] = why
		}
	}
	return verdicts
}

// dropTypeArgs removes everything in brackets from s.
func dropTypeArgs(s string) string {
	var b strings.Builder
	depth := 0
	for _, r := range s {
		if r == '[' {
			depth++
		}
		if depth == 0 {
			b.WriteRune(r)
		}
		if r == ']' {
			depth--
		}
	}
	return b.String()
}

// command is the go command with args, for the platform of the test unless env
// says otherwise.
func command(t testing.TB, env []string, args ...string) *exec.Cmd {
	t.Helper()
	path, err := exec.LookPath("go")
	if err != nil {
		t.Skipf("buildtest: needs the go command to look at compiled code: %v", err)
	}
	cmd := exec.Command(path, args...)
	cmd.Env = append(os.Environ(),
		"GOOS="+runtime.GOOS, "GOARCH="+runtime.GOARCH, "GOFLAGS=-buildvcs=false", "GOWORK=off")
	for _, kv := range env {
		if name, value, ok := strings.Cut(kv, "="); !ok || name == "" {
			t.Fatalf("buildtest: setting %q is not of the form NAME=value", kv)
		} else if name == "GOFLAGS" {
			kv = fmt.Sprintf("GOFLAGS=-buildvcs=false %s", value)
		}
		cmd.Env = append(cmd.Env, kv)
	}
	return cmd
}

// NeedsRun skips t where the kernel cannot run bin, a program that the test has
// built: under user-mode emulation, which runs the test itself but leaves the
// starting of programs to the host's kernel. Any other failure is the caller's
// to find.
func NeedsRun(t testing.TB, bin string) {
	t.Helper()
	if err := exec.Command(bin, "-test.run=^$").Run(); errors.Is(err, syscall.ENOEXEC) {
		t.Skipf("buildtest: needs to run programs of its own kind, and is emulated: %v", err)
	}
}
