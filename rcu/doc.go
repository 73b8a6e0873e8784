// Package rcu lets any number of goroutines read shared data without locks
// while others replace it, and says when what was replaced has no reader left.
//
// A reader surrounds its reads with a section. An updater takes an object out of
// reach (it unpublishes it, with an atomic store), and then waits for a grace
// period: a span of time after which every section that began before it has
// ended. Whoever enters a section later cannot find the object any more, so it
// can be closed, unmapped, recycled, or its number given to another. Sections
// never wait for updaters, and updaters only wait for sections.
//
//	var config rcu.Pointer[Config]
//
//	// Readers, often.
//	g := domain.ReadLock()
//	use(config.Load())
//	g.Unlock()
//
//	// The updater, now and then.
//	config.Replace(domain, next, (*Config).Close)
//
// # When to use it, and when not
//
// The garbage collector already answers when memory may go. For an immutable
// value behind a pointer an [sync/atomic.Pointer] is enough, and faster than any
// section. A grace period earns its cost where something has to happen after the
// last reader: closing a file, unmapping memory, putting an object back into a
// pool, giving an id out again, releasing memory the collector does not own.
// Where updates are as frequent as reads, use a [sync.Mutex].
//
// # Domains and readers
//
// A [Domain] is a set of readers that updaters wait for together. A long section
// in one Domain does not hold up another.
//
// There are two kinds of section. [Domain.ReadLock] needs no preparation and
// returns a [Guard], which any goroutine may unlock. A [Reader] is a handle that
// one goroutine at a time owns; its sections are the fastest there are, and are
// inlined. Both kinds may block, sleep and change threads inside a section, nest,
// and overlap. A section that never ends holds up every grace period of its
// Domain for ever.
//
// A grace period that waits longer than 10 seconds is logged with what it waits for, see
// [WithStallTimeout] and [WithStallHandler]. [WithDebug] finds sections that nobody ends and
// waits that cannot end. [WithMaxPending] bounds what piles up behind a section, and
// [WithLazy] makes fewer grace periods do.
//
// Progress: entering and leaving a section is wait-free. [Domain.Call] and its
// kin are lock-free and never wait for a grace period, but sleep past the limit of
// [WithMaxPending]. [Domain.Synchronize],
// [Domain.Wait], [Domain.Barrier] and [Domain.Close] block, and take a context.
//
// # Memory ordering
//
// For a grace period that was waited for by a call of Synchronize, of Wait, by a
// Poll that returned true, or by the run of a callback:
//
//   - The end of each section that began before the grace period was asked for
//     (by Synchronize, by the Cookie, by Call) synchronizes before the return of
//     that call, or before the start of the callback.
//   - A section that began later observes the atomic stores that come before the
//     request in the order of the asking goroutine.
//
// A section is one or the other, or both. What callbacks did synchronizes before
// the return of a Barrier or a Close that waited for them. A call that returned an
// error orders nothing.
//
// Unpublishing and finding must be atomic operations, such as those of [Pointer]:
// sections do not make racing plain accesses right.
//
// # Costs
//
// On linux a section of a Reader is two plain stores to a line of its own, one of a
// Guard two to a line of the CPU's, or, beside more than eight others that began on
// that CPU, two increments of its counters; neither writes to a line that other
// CPUs write to. The other side pays: a grace period interrupts each CPU that runs
// this process for about a microsecond (membarrier(2)). Where the kernel cannot do
// that, readers execute the barrier, see [Stats.ReaderMode].
//
// A Domain costs some hundred bytes, 128 per CPU (up to 64 CPUs), and 96 bytes of
// per-CPU memory; a Reader 128 bytes. An idle Domain has no goroutine.
//
// # Limits
//
// A Domain that is used inside a testing/synctest bubble must not be waited for
// from outside at the same time, and its callbacks should have run when the bubble
// ends, which a Barrier or a Close sees to. A Guard that was unlocked twice is
// not always detected at once, or at all; [WithDebug] finds it.
//
// docs/rcu-engine.md has the protocol, and why it is right.
package rcu
