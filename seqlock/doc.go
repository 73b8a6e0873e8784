// Package seqlock has sequence locks: readers of a small record look at a
// counter before and after, and read again if a writer was there.
package seqlock
