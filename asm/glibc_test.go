//go:build cgo && quiesce_cgo && linux && !android && (amd64 || arm64) && gc && !purego && !race && !go1.28

package asm

import (
	"bytes"
	"encoding/binary"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func init() {
	children["rseq"] = func(string) {
		_, err := RSEQ()
		println("rseq:", err == nil)
		if err != nil {
			println(err.Error())
		}
		if err := count(1 << 20); err != nil {
			println(err.Error())
		}
	}
}

// TestGlibc_Tunable: glibc was told not to register its threads.
func TestGlibc_Tunable(t *testing.T) {
	out := child(t, "rseq", "", "GLIBC_TUNABLES=glibc.pthread.rseq=0")
	if !strings.HasPrefix(out, "rseq: false\nasm: no restartable sequences: glibc did not register") || strings.Count(out, "\n") != 2 {
		t.Errorf("got\n%s", out)
	}
}

// TestGlibc_Path: a program in a directory with a name like the loader's.
func TestGlibc_Path(t *testing.T) {
	if _, err := RSEQ(); err != nil {
		t.Skip(err)
	}
	cmd := childCommand(t, "rseq", "")
	program, err := os.ReadFile(cmd.Path)
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "ld-linux", "ld-2.36")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	cmd.Path = filepath.Join(dir, "ld-linux-test")
	if err := os.WriteFile(cmd.Path, program, 0o700); err != nil {
		t.Fatal(err)
	}
	out, err := cmd.CombinedOutput()
	if err != nil || string(out) != "rseq: true\n" {
		t.Errorf("%v, got\n%s", err, out)
	}
}

// TestGlibc_OtherFile: the loader's file is not the one that was loaded, as
// after an upgrade. What its symbols say must not be believed.
func TestGlibc_OtherFile(t *testing.T) {
	path, base := loader(t)
	if _, _, err := loaderRSEQ(path, base); err != nil {
		t.Fatal(err)
	}
	file, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	wild := binary.LittleEndian.AppendUint64(nil, 1<<46)
	for name, content := range map[string][]byte{
		"empty":         {},
		"cut":           file[:3000],
		"short":         file[:600],
		"no ELF":        bytes.Repeat([]byte("text"), 1000),
		"other headers": append(append(append([]byte{}, file[:0x60]...), wild...), file[0x68:]...),
		"other id":      otherID(file),
	} {
		other := filepath.Join(t.TempDir(), "ld")
		if err := os.WriteFile(other, content, 0o600); err != nil {
			t.Fatal(err)
		}
		if off, size, err := loaderRSEQ(other, base); err == nil {
			t.Errorf("%s: %d, %d", name, off, size)
		} else {
			t.Logf("%s: %v", name, err)
		}
	}
	if _, _, err := loaderRSEQ(filepath.Join(t.TempDir(), "none"), base); err == nil {
		t.Error("a file that does not exist is believed")
	}
}

// otherID returns the file with another build id, which two builds with the same
// headers differ in.
func otherID(file []byte) []byte {
	other := bytes.Clone(file)
	if at := bytes.Index(other, []byte("GNU\x00")); at >= 0 {
		other[at+4] ^= 1
	}
	return other
}

// loader returns the file of the dynamic loader and where it is mapped.
func loader(t *testing.T) (path string, base uintptr) {
	t.Helper()
	maps, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(maps)) {
		f := strings.Fields(line)
		if len(f) == 6 && f[2] == "00000000" && strings.HasPrefix(filepath.Base(f[5]), "ld-") {
			for _, c := range f[0][:strings.IndexByte(f[0], '-')] {
				base = base<<4 | uintptr(strings.IndexRune("0123456789abcdef", c))
			}
			return f[5], base
		}
	}
	t.Skip("no dynamic loader is mapped: this program was linked statically")
	return
}
