package asm

import (
	"math/bits"
	"sync/atomic"

	"github.com/quiesce-go/quiesce/internal/pin"
	"github.com/quiesce-go/quiesce/internal/tier"
)

// The tiers, in the order of their columns in memory. The assembly knows that
// the rseq tier is first.
const (
	tierRSEQ = iota
	tierPinned
	tierShared
	tierCount
)

var (
	// tierNow is the tier in force. Only tests change it after decide.
	tierNow atomic.Uint32
	// tiersUsed has a bit for each tier whose columns may hold anything but
	// zero. Bits are only ever set.
	tiersUsed atomic.Uint32
)

func currentTier() int { return int(tierNow.Load()) }

// markUsed is called before the first store to a tier's columns. Pairs with the
// load in Sum: a sum that counts the store, or that must, sees the bit.
func markUsed(t int) {
	if tiersUsed.Load()&(1<<t) == 0 {
		tiersUsed.Or(1 << t)
	}
}

// tierStart puts the best tier in force.
func tierStart() {
	setTier(tierRSEQ)
}

// setTier puts t in force, or the next one that works here.
func setTier(t int) {
	if t == tierRSEQ && (!rseqBuilt || rseqErr != nil) {
		t = tierPinned
	}
	if t == tierPinned && !pinTier {
		t = tierShared
	}
	markUsed(t)
	tierNow.Store(uint32(t))
	if t == tierRSEQ {
		setRSEQColumns(uint32(columns))
	} else {
		setRSEQColumns(0)
	}
}

// pinTier says whether plain stores to a P's column work: loads by others must
// not tear, and the race detector must not be kept from seeing an edge.
const pinTier = pin.Works && bits.UintSize == 64 && !raceEnabled

func init() {
	names := [tierCount]tier.Tier{tierRSEQ: tier.RSEQ, tierPinned: tier.Pinned, tierShared: tier.Shared}
	tier.Current = func() tier.Tier {
		decide()
		return names[currentTier()]
	}
	tier.Switch = func(to tier.Tier) (tier.Tier, func()) {
		decide()
		old := currentTier()
		for t, n := range names {
			if n == to {
				setTier(t)
			}
		}
		return names[currentTier()], func() { setTier(old) }
	}
}
