//go:build quiesce_mutant

package percpu

import "os"

// mutant is the deliberate fault of this build, which exists to show that the tests
// can fail.
var mutant = os.Getenv("QUIESCE_MUTANT")
