//go:build quiesce_mutant

package sysv

import "os"

// mutant is the deliberate fault of this build.
var mutant = os.Getenv("QUIESCE_MUTANT")
