// Package patience is for tests whose outcome hangs on who runs when: a race that has to be lost before a
// deliberate fault shows, or a time that other programs can make longer but not shorter. One try
// says little about either, so there are further ones.
//
//	patience.Until(t, "a lost add", func() (any, bool) {
//		lost := hammer()
//		return lost, lost != 0
//	})
package patience

import (
	"testing"
	"time"
)

// Limit is for how long further tries begin.
var Limit = 2 * time.Minute

// Until calls try until it returns true, and fails t if it has not when Limit is over, or at once if
// try has failed t. What is in words what is tried, got what came of it; the log says both, in
// which try, and after how long.
func Until(t testing.TB, what string, try func() (got any, ok bool)) {
	t.Helper()
	start := time.Now()
	for n := 1; ; n++ {
		got, ok := try()
		took := time.Since(start)
		switch {
		case ok:
			t.Logf("%s: in try %d, after %v: %v", what, n, took.Round(time.Millisecond), got)
			return
		case took > Limit:
			t.Errorf("%s: not in %d tries, for %v: %v", what, n, took.Round(time.Millisecond), got)
			return
		case t.Failed():
			return
		}
	}
}
