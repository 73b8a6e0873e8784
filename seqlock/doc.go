// Package seqlock has sequence locks: readers of a small record take no lock
// and write nothing that is shared. They look at a counter before and after
// they copy the record, and copy it again if a writer was there.
//
//   - [Value] holds a record of any type without pointers, and is all that most
//     programs need: Load, Store, Update, Version.
//   - [Latch] holds one too, in two copies, so that its readers wait for no writer,
//     whatever happens to that one.
//   - [Lock] is a counter and a mutex for its writers, for data that lives
//     elsewhere.
//   - [Count] is the counter alone, for writers that have a lock already.
//
// # When to use
//
// For some bytes to some hundred that are read far more often than written, by
// many goroutines, and that must be seen as a whole: a clock's parameters,
// coordinates, a sensor's reading, statistics, a configuration of numbers.
// Readers scale with the processors, and a write makes no garbage.
//
// # When not
//
// For data with pointers take an [atomic.Pointer] to something that is never
// changed, or package rcu when it has to be reclaimed. For one word take a type
// of sync/atomic. Where writes are as frequent as reads a mutex is as good. The
// more bytes, the more reads meet a write and are made again: past 512 bytes or
// so prefer an atomic.Pointer.
//
// # Progress
//
// [Value.TryLoad], [Value.Version], [Count.TryBegin], [Count.Retry] and the same
// methods of Lock are wait-free. [Latch.Load] is lock-free: it is made again only
// when writers have got on. [Value.Load] waits only while some writer
// copies its T; it makes a bounded number of attempts that writers may
// overtake, and then keeps them out. [Count.Begin] and [Lock.Begin] wait for a
// writer that is inside; readers that use Retry may be overtaken for ever,
// [Lock.Read] takes the lock in the end. Writers exclude each other, and may
// block.
//
// # Memory ordering
//
// In the words of the Go memory model: a write, meaning a Store or an Update that
// returns, of a Value or Latch, a WriteBegin and its WriteEnd, or a Lock and its
// Unlock, synchronizes before each read that sees its sequence or a later one,
// and before each later write. Reads synchronize before nothing, and there is
// no order of all operations on different Values or Latches such as sync/atomic has.
//
// The words of both are read and written atomically, by sync/atomic or by
// assembly with the fences that this needs, so programs that use it have no
// data race, and the race detector agrees. The data of a Lock or Count is the
// user's: readers load it while a writer may be storing it, so both must use
// sync/atomic for that.
//
// # Costs
//
// With no writer near, and whatever the number of readers, a Load of up to four
// words takes 1 to 2 ns: it is inlined and calls nothing. One of 64 bytes takes 3
// ns, and so does one of several words that hold nothing but smaller fields. The
// copy that the assembly makes is a small part of it, and the zeroing and copying
// of results that the compiler adds a larger one as T grows, which [Value.LoadTo]
// saves. A Store is one locked instruction and a
// copy, and the compiler's copy of its argument, which [Value.StoreFrom] saves.
// Nothing allocates but the first Update of a Value, which makes a T.
// A Value takes some 170 bytes more than T, for the distance to its neighbours
// in memory. A Latch loads in 2 to 3 ns, takes some 230 bytes more than two T, and stores in
// two locked instructions and a copy. Measurements are in docs/seqlock.md.
//
// # Limits
//
// A goroutine that Stores to a Value or Latch inside of its own Update, or reads a Lock
// or Count inside of its own write, waits for ever. The padding inside of a T is
// not kept: compare two with ==, not by their bytes.
package seqlock
