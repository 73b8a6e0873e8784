package list

import "runtime"

// The faults that a build with the tag quiesce_mutant can have, by the name in the environment
// variable QUIESCE_MUTANT. They show that the tests can fail.
const (
	mutantNone      = ""
	mutantClearLink = "list-clearlink" // Remove clears the forward link
	mutantKeepLink  = "list-keeplink"  // Remove leaves the Element where readers find it
	mutantEarlyLink = "list-earlylink" // an Element is found before its own link is set
)

// mutantPause lets others run where a mutant does things in the wrong order.
func mutantPause() { runtime.Gosched() }
