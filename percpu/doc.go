// Package percpu has data structures that are sharded by CPU: updates touch a
// cache line that only this CPU writes, reads visit every CPU's.
//
//   - [Counter] counts. Its Add is one assembly call and, on Linux, one plain
//     instruction inside a restartable sequence.
//   - [Words] is an array of words with one copy for each CPU and the
//     operations that Counter is made of, for building your own.
//   - [BatchCounter] is a counter whose approximate value costs one load.
//   - [Local] holds one value of any type for each CPU and lends it out.
//   - [Ring] is a trace buffer for each CPU, read as one in the order of time.
//   - [Pool] keeps objects for reuse, and unlike sync.Pool gives them all back.
//   - [RWMutex] is a sync.RWMutex for data that is hardly ever written.
//   - [Ref] counts references to something whose owner lets go once.
//
// # When to use
//
// Use Counter where many goroutines count and few look: requests, bytes, hits.
// Where one goroutine counts, or where the count is read as often as it is
// written, atomic.Int64 is smaller and as fast. A Counter is no id generator:
// Add does not tell the total. Use BatchCounter where limits are checked against
// the count, and Local where what is kept for each CPU is more than a number. An
// RWMutex pays off where a thousand reads come to a write; Lock costs a
// microsecond and interrupts every CPU.
//
// # Progress
//
// Counter.Add and Words.Add are wait-free, except that the first Add of a
// Counter takes a lock for its memory. Sum is wait-free but for Reset beside
// it. BatchCounter.Add takes a lock once for each batch. Local and RWMutex are
// locks. Ring.Write never waits for a reader, and is wait-free but in the shared
// tier, where it takes a lock. Ref is wait-free until Kill and lock-free after. Pool
// takes a lock where a stack runs empty or full, once for half a stack.
//
// # Memory ordering
//
// A Local, a Pool, a Ring, an RWMutex and a Ref order as their comments say. A Counter, a
// BatchCounter and Words are for counting, not for synchronizing: that a Sum counted an Add
// does not mean that what the adder wrote before is visible. An Add that
// happens before a Sum, by any means of the Go memory model, is counted by it.
//
// # Costs and limits
//
// A Counter is 24 bytes, and 8 bytes of per-CPU memory for each CPU that used
// it, in cache lines shared with other Counters of the same CPU. Package asm
// has the tiers and their limits.
package percpu
