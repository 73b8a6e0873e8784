package rcu

// The faults that a build with the tag quiesce_mutant can have, by the name in the
// environment variable QUIESCE_MUTANT.
const (
	mutantNone           = ""
	mutantJoin           = "join"           // an arrival joins the grace period in progress
	mutantNoShare        = "noshare"        // whoever waits has a grace period that others do not wait for
	mutantNoFence        = "nofence"        // a grace period begins without a fence
	mutantOnePhase       = "onephase"       // only the current phase of Guards is waited for
	mutantNoFlip         = "noflip"         // the phases of Guards never change places
	mutantNestRefresh    = "nestrefresh"    // a nested Lock announces a new number
	mutantSkipSlot       = "skipslot"       // the scan leaves out one record and one phase
	mutantLockedRegister = "lockedregister" // NewReader needs what a waiting Synchronize holds
	mutantOnePass        = "onepass"        // Barrier does not mind that a pass began while it looked
	mutantLostClose      = "lostclose"      // Barrier waits for a pass after Close
	mutantLockedCall     = "lockedcall"     // Call needs what a waiting Synchronize holds
	mutantEarlyFinish    = "earlyfinish"    // the end of a pass counts as that of the next one too
	mutantGPBarrier      = "gpbarrier"      // Barrier is a grace period
	mutantLostWish       = "lostwish"       // the worker ends without a last look
	mutantNarrow         = "narrow"         // numbers are compared in 32 bits
	mutantImmortal       = "immortal"       // the worker never ends
	mutantRequeue        = "requeue"        // a Head may be queued twice
	mutantVerdict        = "verdict"        // a Call beside Close takes another's turn of its Head for its own
	mutantNoLimit        = "nolimit"        // any number of callbacks may be pending
	mutantNoExpedite     = "noexpedite"     // grace periods take their time whatever is pending
	mutantLostBatch      = "lostbatch"      // a callback that ends its goroutine takes its batch along
	mutantStarve         = "starve"         // grace periods wait while callbacks run
	mutantNoFlush        = "noflush"        // nobody sends off what a lazy Domain keeps
	mutantNagging        = "nagging"        // a stall is reported again and again
	mutantNoDeadlock     = "nodeadlock"     // waits that would never end begin
	mutantNoReclaim      = "noreclaim"      // the section of a dropped Reader goes on
	mutantNoEdge         = "noedge"         // sections end by plain stores, or untold, in race builds
	mutantLockedLog      = "lockedlog"      // a dropped Guard is logged under a lock that sections need
)
