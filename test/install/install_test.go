package install

import (
	"bytes"
	"cmp"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"golang.org/x/mod/module"
	"golang.org/x/mod/zip"
)

const root = "../.."

// quiesce is this tree, as a version that a user gets.
var quiesce = module.Version{Path: "github.com/quiesce-go/quiesce", Version: "v0.999.0"}

// TestNewUser runs the command of the README's section Install in an empty module, and the README's first
// program there, which has to print what the README says. Every package of the module has to build
// there too: what needs a file that the zip leaves out does not.
func TestNewUser(t *testing.T) {
	readme, err := os.ReadFile(filepath.Join(root, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, install, _ := bytes.Cut(readme, []byte("\n## Install\n"))
	get := strings.Fields(block(t, install, "sh"))
	if len(get) != 3 || get[0] != "go" || get[1] != "get" {
		t.Fatalf("the README's section Install has %q, want one go get", get)
	}
	program := block(t, readme, "go")
	_, after, _ := bytes.Cut(readme, []byte(program))

	u := newUser(t)
	u.run("go", "mod", "init", "example.org/user")
	u.run(get...)
	if err := os.WriteFile(filepath.Join(u.dir, "main.go"), []byte(program), 0o666); err != nil {
		t.Fatal(err)
	}
	if got, want := u.run("go", "run", "."), block(t, after, ""); got != want {
		t.Errorf("the README's first example prints\n%s\nwant\n%s", got, want)
	}
	u.run("go", "build", quiesce.Path+"/...")
}

// block returns the first fenced block of a language that text has.
func block(t *testing.T, text []byte, language string) string {
	t.Helper()
	m := regexp.MustCompile("(?s)\n```" + language + "\n(.*?)```\n").FindSubmatch(text)
	if m == nil {
		t.Fatalf("no block of %q in the README", language)
	}
	return string(m[1])
}

// A user has an empty folder, and a module cache that has nothing of quiesce.
type user struct {
	t   *testing.T
	dir string
	env []string
}

// newUser skips t if there is no way to get what quiesce needs: not in the module cache, and no network.
func newUser(t *testing.T) user {
	proxy, cache := t.TempDir(), t.TempDir()
	publish(t, filepath.Join(proxy, filepath.FromSlash(quiesce.Path), "@v"))

	u := user{t, t.TempDir(), os.Environ()}
	// What others have published comes from the usual cache, whose downloads are laid out as a proxy, or
	// from the usual proxy.
	usual := strings.TrimSpace(u.run("go", "env", "GOMODCACHE"))
	u.env = append(u.env,
		"GOPROXY="+url(proxy)+","+url(usual)+"/cache/download,"+strings.TrimSpace(u.run("go", "env", "GOPROXY")),
		"GONOSUMDB="+strings.Trim(os.Getenv("GONOSUMDB")+","+quiesce.Path, ","),
		"GOMODCACHE="+cache,
		"GOFLAGS=-modcacherw", // so that it can be deleted
		"GOWORK=off", "GOTOOLCHAIN=local")

	needs := user{t, t.TempDir(), u.env}
	copyFile(t, filepath.Join(needs.dir, "go.mod"), filepath.Join(root, "go.mod"))
	if out, errs, err := needs.try("go", "mod", "download"); err != nil {
		t.Skipf("what quiesce needs is not to be had here: %v\n%s%s", err, out, errs)
	}
	return u
}

// publish makes dir what a proxy has of this tree. The zip is made by the go command's own rules, and what
// breaks them fails t.
func publish(t *testing.T, dir string) {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	files, err := zip.CheckDir(root)
	if err == nil {
		err = files.Err()
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files.Omitted {
		t.Logf("not in the zip: %v", f)
	}
	t.Logf("in the zip: %d files", len(files.Valid))

	f, err := os.Create(filepath.Join(dir, quiesce.Version+".zip"))
	if err != nil {
		t.Fatal(err)
	}
	if err := cmp.Or(zip.CreateFromDir(f, quiesce, root), f.Close()); err != nil {
		t.Fatal(err)
	}
	copyFile(t, filepath.Join(dir, quiesce.Version+".mod"), filepath.Join(root, "go.mod"))
	for name, text := range map[string]string{
		"list":                    quiesce.Version + "\n",
		quiesce.Version + ".info": `{"Version":"` + quiesce.Version + `"}`,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
}

func url(dir string) string { return "file://" + filepath.ToSlash(dir) }

func copyFile(t *testing.T, to, from string) {
	t.Helper()
	text, err := os.ReadFile(from)
	if err == nil {
		err = os.WriteFile(to, text, 0o666)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// run has the user run a command, and returns what it prints.
func (u user) run(args ...string) string {
	u.t.Helper()
	out, errs, err := u.try(args...)
	if err != nil {
		u.t.Fatalf("%s: %v\n%s%s", strings.Join(args, " "), err, out, errs)
	}
	return out
}

func (u user) try(args ...string) (out, errs string, err error) {
	var stdout, stderr bytes.Buffer
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = u.dir, u.env, &stdout, &stderr
	err = cmd.Run()
	return stdout.String(), stderr.String(), err
}
