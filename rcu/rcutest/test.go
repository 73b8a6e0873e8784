package rcutest

import "context"

// TB is what [Test] needs of a [testing.TB].
type TB interface {
	Helper()
	Context() context.Context
	Logf(format string, args ...any)
	Errorf(format string, args ...any)
}

// Test is Run in a test: it fails t if the torture fails, and logs the report in any case.
func Test(t TB, cfg Config) Report {
	t.Helper()
	r, err := Run(t.Context(), cfg)
	t.Logf("%v", r)
	if err != nil {
		t.Errorf("%v", err)
	}
	return r
}
