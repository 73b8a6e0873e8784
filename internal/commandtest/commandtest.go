// Package commandtest has what the tests of each of this module's commands want to know: that wrong
// use ends with status 2 and the usage, and a disk that is full with status 1 and why.
package commandtest

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
)

// A Command carries out command line arguments and returns the exit status.
type Command func(args []string, stdout, stderr io.Writer) int

// Misuse fails t unless each of the wrong arguments ends with status 2 and usage, and -h with 0 and usage.
func Misuse(t *testing.T, run Command, usage string, wrong ...[]string) {
	t.Helper()
	for _, args := range wrong {
		var out, errs bytes.Buffer
		if code := run(args, &out, &errs); code != 2 || out.Len() != 0 || !strings.Contains(errs.String(), usage) {
			t.Errorf("%q: exit status %d, stdout %q, stderr %q", args, code, out.String(), errs.String())
		}
	}
	var out, errs bytes.Buffer
	if code := run([]string{"-h"}, &out, &errs); code != 0 || out.String() != usage || errs.Len() != 0 {
		t.Errorf("-h: exit status %d, stdout %q, stderr %q", code, out.String(), errs.String())
	}
}

// WriteError fails t unless the command, when it cannot write what it has to say, ends with status 1
// and says that.
func WriteError(t *testing.T, run Command, args ...string) {
	t.Helper()
	var errs bytes.Buffer
	if code := run(args, fullDisk{}, &errs); code != 1 || !strings.Contains(errs.String(), errFull.Error()) {
		t.Errorf("exit status %d, stderr %q", code, errs.String())
	}
}

var errFull = errors.New("no space left")

type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) { return 0, errFull }
