//go:build !quiesce_mutant

package percpu

// mutant selects a deliberate fault. Here there is none, and the compiler drops the
// code that asks. See mutant_on.go.
const mutant = mutantNone
