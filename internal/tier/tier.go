// Package tier names the three ways a cell of per-CPU memory is updated and
// lets the module's own tests choose one. Users see the choice through
// asm.RSEQ and `quiesce info`; they cannot change it.
package tier

// A Tier is a discipline for updating the words of per-CPU memory.
type Tier uint32

const (
	Shared Tier = iota // atomic read-modify-write, from any thread
	Pinned             // plain instructions between procPin and procUnpin
	RSEQ               // plain instructions inside a restartable sequence
)

func (t Tier) String() string {
	switch t {
	case Shared:
		return "shared"
	case Pinned:
		return "pinned"
	case RSEQ:
		return "rseq"
	}
	return "unknown"
}

// Switch is set by package asm at start-up. It moves the process to tier t, or
// to the best one below t that works here, and returns the tier that is in
// force and a function that goes back. Moving is safe at any time, also
// beside running updates: every tier has columns of its own and sums cover
// them all.
var Switch func(t Tier) (now Tier, undo func())

// Current reports the tier in force. It is set by package asm at start-up.
var Current func() Tier
