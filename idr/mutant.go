package idr

// The faults that a build with the tag quiesce_mutant can have, by the name in the environment
// variable QUIESCE_MUTANT. They show that the tests can fail.
const (
	mutantNone       = ""
	mutantReuseSlots = "idr-reuseslots" // slots of an unlinked leaf are used for other ids at once
	mutantClearInner = "idr-clearinner" // an inner node is cleared when it is unlinked
	mutantNoFill     = "idr-nofill"     // a directory that grows leaves out what is in the tree
	mutantNoOpen     = "idr-noopen"     // inner nodes stay full
	mutantNotHeld    = "idr-notheld"    // an id is not held while its object is built
	mutantRetireNow  = "idr-retirenow"  // an object is freed without a grace period
	mutantEarlyID    = "idr-earlyid"    // an id is free before its object is
	mutantCursor     = "idr-cursor"     // a cyclic search stops short of where it began
	mutantTruncate   = "idr-truncate"   // the limits of a range are cut to 32 bits
	mutantOneID      = "idr-oneid"      // a range of one id is refused
	mutantWrapError  = "idr-wraperror"  // a cyclic search that begins again at min is an error
	mutantFreeTwice  = "idr-freetwice"  // a free id beside others can be freed
	mutantNextEnds   = "idr-nextends"   // an iteration ends at a leaf that has become empty
	mutantRacySwap   = "idr-racyswap"   // CompareAndSwap lets go of the mutex after comparing
	mutantPartial    = "idr-partial"    // AllocN takes some ids before it finds that there are too few
	mutantDropChunk  = "idr-dropchunk"  // an IDA drops the chunk that was emptied last although it has ids again
	mutantSameSeq    = "idr-sameseq"    // a slot's next object gets the handle that the last one had
	mutantReleaseNow = "idr-releasenow" // an object is released without a grace period
	mutantRevive     = "idr-revive"     // Get takes a reference when none is left
	mutantLockBlind  = "idr-lockblind"  // Lock does not see that the object was removed
)

// mutantSlots are what mutantReuseSlots uses again.
var mutantSlots []*slots
