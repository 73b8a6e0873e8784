package percpu

// The faults that a build with the tag quiesce_mutant can have, by the name in the
// environment variable QUIESCE_MUTANT.
const (
	mutantNone      = ""
	mutantNoStop    = "nostop"    // Pool.Drain does not wait for who is pinned
	mutantNoFence   = "nofence"   // Ref.Kill and RWMutex.Lock shut the gate without a fence
	mutantNoLook    = "nolook"    // readers of an RWMutex do not look for a writer
	mutantLostRest  = "lostrest"  // a BatchCounter counts a remainder that it did not take
	mutantOverLimit = "overlimit" // BatchCounter.TryAdd looks at the approximate value
	mutantStaleSwap = "staleswap" // Words.CompareAndSwap compares, and swaps later
	mutantNoLock    = "nolock"    // a Local is lent without its lock
	mutantAnyRef    = "anyref"    // the slow path takes a Ref for an RWMutex
	mutantForget    = "forget"    // a Local is not kept while it is lent
)
