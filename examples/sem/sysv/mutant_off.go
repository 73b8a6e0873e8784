//go:build !quiesce_mutant

package sysv

// mutant is the deliberate fault of this build: none, so the compiler drops the code that asks.
const mutant = mutantNone
