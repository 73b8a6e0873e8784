//go:build quiesce_mutant

package rcu

import "os"

// mutant is the deliberate fault of this build, which exists to show that the tests
// can fail.
var mutant = os.Getenv("QUIESCE_MUTANT")
