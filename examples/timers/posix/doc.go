// Package posix has the timers of POSIX (timer_create and its kin) inside a process: timers that
// are known by small ids, belong to an [Owner] as those of a kernel belong to a process, and tell
// by a callback when they expire.
//
// A [Table] has the timers of all its owners. [New] makes one whose lookups of ids run in RCU read
// sections; [NewLocked] makes its twin, with the one lock around every lookup that Linux had until
// 2011. They share everything else, so that the difference between them is what the lookup costs.
//
// Programs that want a callback after some time have [time.AfterFunc]. This package is for code
// that expects ids, owners, intervals without drift and counts of overruns; and to be read, as an
// example of a table whose objects are used again.
//
// # How a lookup works
//
// The state of a timer is guarded by a mutex of its own. A lookup begins a read section, finds the
// timer by its id, locks it, sees whether it (still) belongs to the caller, and ends the section.
// The order matters: a timer that was deleted is not used again before the sections have ended in
// which it may have been found. So what a lookup locks is the timer that it found or what is left of
// that, which has no owner, and never another timer. A lookup writes to the mutex of its own
// timer, and apart from that only to the record of its section, which is its own or its CPU's.
//
// # Memory ordering
//
// Calls for one timer are ordered by its mutex, whether they return an error or not, except that a
// call with an id that nobody has is ordered after nothing. A Settime synchronizes before the
// callbacks that it causes; the callbacks of one timer are ordered, and each returns before the next
// begins.
//
// # Costs
//
// A lookup is lock-free but for the timer's own mutex, and O(1). Gettime and Settime allocate
// nothing. A timer takes 128 bytes, so that no two share a cache line, and about as much for its
// [time.Timer]; both are used again for the next timer of the table, and are given back with the table.
//
// # Limits
//
// Expirations come from the Go runtime, which is late by as much as it takes to get a goroutine
// running. An absolute time of [Realtime] follows the wall clock only when it is looked at: a clock
// that is set back has the timer wait for longer, and one that is set forward does not make it expire
// earlier than the runtime's own clock has it.
package posix
