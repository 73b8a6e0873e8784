package buildtest

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/quiesce-go/quiesce/internal/patience"
)

// TestFaulty fails, and says so, in a twin with a fault.
func TestFaulty(t *testing.T) {
	if name := os.Getenv(mutantVariable); name != "" {
		t.Errorf("the fault %s is here", name)
	}
}

func TestTwins(t *testing.T) {
	w := BuildTwins(t, false)
	w.MustPass(t, "TestFaulty")
	w.MustFind(t, "any", "TestFaulty", "the fault any is here")
	defer func(d time.Duration) { patience.Limit = d }(patience.Limit)
	patience.Limit = 0
	for name, f := range map[string]func(testing.TB){
		"TestFaulty finds the fault any: not":        func(tb testing.TB) { w.MustFind(tb, "any", "TestFaulty", "something else") },
		"TestParseInlining finds the fault any: not": func(tb testing.TB) { w.MustFind(tb, "any", "TestParseInlining", "") },
		"TestFaulty fails without a fault":           func(tb testing.TB) { w.MustPass(tb, "TestFaulty", "-test.nosuchflag") },
	} {
		if r := record(t, f); !r.failed || !strings.Contains(r.log, name) {
			t.Errorf("it says %q, want %q", r.log, name)
		}
	}
}
