package sysv

// The faults that a build with the tag quiesce_mutant can have, by the name in the environment
// variable QUIESCE_MUTANT. They show that the tests can fail.
const (
	mutantNone    = ""
	mutantPartial = "sysv-partial" // an Op that cannot be done leaves behind what it has done of it
	mutantOpen    = "sysv-open"    // Stat leaves its section open when it is not permitted
)
