package patience

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// A fake is a test that may fail.
type fake struct {
	testing.TB
	failed bool
	log    string
}

func (f *fake) Helper()                         {}
func (f *fake) Failed() bool                    { return f.failed }
func (f *fake) Logf(format string, args ...any) { f.log += fmt.Sprintf(format, args...) }
func (f *fake) Errorf(format string, args ...any) {
	f.failed = true
	f.Logf(format, args...)
}

func TestUntil(t *testing.T) {
	defer func(d time.Duration) { Limit = d }(Limit)
	for _, test := range []struct {
		limit  time.Duration
		at     int // the try that works, or none
		breaks int // the try in which the test fails for itself, or none
		failed bool
		log    string
		tries  int
	}{
		{time.Minute, 1, 0, false, "a seven: in try 1, after ", 1},
		{time.Minute, 5, 0, false, "a seven: in try 5, after ", 5},
		{-1, 1, 0, false, "a seven: in try 1, after ", 1},
		{-1, 2, 0, true, "a seven: not in 1 tries, for ", 1},
		{time.Minute, 0, 3, true, "", 3},
	} {
		Limit = test.limit
		f, n := &fake{TB: t}, 0
		Until(f, "a seven", func() (any, bool) {
			n++
			f.failed = n == test.breaks
			return fmt.Sprint("got ", n), n == test.at
		})
		if f.failed != test.failed || n != test.tries || !strings.HasPrefix(f.log, test.log) {
			t.Errorf("%+v: %d tries, failed: %v, log %q", test, n, f.failed, f.log)
		}
		if test.log != "" && !strings.HasSuffix(f.log, fmt.Sprint(": got ", n)) {
			t.Errorf("%+v: log %q does not end with what was got", test, f.log)
		}
	}
}
