package rcutest

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/quiesce-go/quiesce/rcu"
)

// A Report is what a torture did and found.
type Report struct {
	Seed    uint64 // with which Config.Seed chooses the same operations
	Elapsed time.Duration

	Sections uint64 // ended
	Updates  uint64 // objects that were taken out
	Freed    uint64 // of them, those that are ready to be used again

	// Ages counts the objects that sections held when they looked at them for the last time, by age: 0 in
	// the structure, 1 taken out, 2 and more taken out and that many grace periods, less one, ago. The last
	// one counts all higher ages. Only the first two may be above 0.
	Ages [maxAge + 1]uint64

	// Waits counts the grace periods that updates were planned to wait for, by how.
	Waits map[string]uint64

	// Stats is about the Domain.
	Stats rcu.Stats

	// Failures says what went wrong, nothing if it is empty. A torture ends at the first failure; others
	// may come up before it has.
	Failures []string
}

// maxAge is the age of an object after the longest pipe of grace periods.
const maxAge = pipe + 1

// String returns the Report in some lines: the histogram of ages, and the failures.
func (r Report) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "seed %d, %v: %d sections, %d updates, %d freed, %d grace periods (%v on average, %v at most)\n", r.Seed,
		r.Elapsed.Round(time.Millisecond), r.Sections, r.Updates, r.Freed, r.Stats.GracePeriods, r.Stats.LatencyMean, r.Stats.LatencyMax)
	fmt.Fprintf(&b, "waits:")
	for _, how := range slices.Sorted(maps.Keys(r.Waits)) {
		fmt.Fprintf(&b, " %s %d", how, r.Waits[how])
	}
	fmt.Fprintf(&b, "\nages: ")
	for age, n := range r.Ages {
		fmt.Fprintf(&b, " %d: %d", age, n)
	}
	for _, f := range r.Failures {
		fmt.Fprintf(&b, "\nFAILED: %s", f)
	}
	return b.String()
}
