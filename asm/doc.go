// Package asm is the ground floor of quiesce: what the processor and the
// kernel offer to code that must not share cache lines.
//
// # What is here
//
//   - [CPU], [CPUNode] and [CPUBy] read the number of the processor the caller
//     runs on, by the fastest way this machine has; [Sources] lists the ways.
//   - [Cycles], [CyclesOrdered] and [Pause] are single instructions.
//   - [Membarrier] and [Fence] are the updater's half of an asymmetric fence:
//     readers pay nothing, the updater runs a barrier on every thread.
//   - [RSEQ] says whether restartable sequences (rseq(2), in the kernel since
//     Linux 4.18) work in this process, and who registered the threads.
//   - [Block] is per-CPU memory: a run of 64-bit words with one copy for each
//     CPU, updated by restartable sequences where they work.
//   - [Claims] are words of such memory that one goroutine at a time has, taken by a
//     restartable sequence and given back by a plain store.
//   - [Log] is a buffer of records for each CPU, which are reserved, copied and
//     committed in one such sequence.
//
// Most programs want packages percpu and rcu, which are built on this one.
//
// # Tiers
//
// A word of per-CPU memory is updated in one of three ways, chosen once for
// the process and shown by `quiesce info`:
//
//	rseq    a plain instruction inside a restartable sequence. The kernel moves
//	        the thread to the sequence's abort handler if it was preempted,
//	        migrated or signalled before the last instruction, so the update
//	        is never seen by two threads at once. Linux on amd64 and arm64.
//	pinned  a plain instruction between the Go scheduler's procPin and
//	        procUnpin, in a column of the P. 64-bit platforms.
//	shared  an atomic add in a column picked by CPU number or a hash. Race
//	        builds, -tags purego, 32-bit platforms, untested Go releases, and
//	        any single thread for which a better tier fails.
//
// Each tier has columns of its own, so a column has one discipline for life and
// a thread that falls back writes elsewhere; sums cover every column. That is
// why falling back, at any time, costs speed and never a count.
//
// # Memory ordering
//
// The doc comment of each operation says what it orders. In the shared tier
// Block operations are sync/atomic operations. In the other tiers a Block
// operation orders nothing by itself on the caller's side, except that on
// arm64 it is a store-release and that on amd64 every store is one; use Fence,
// or an operation of sync or sync/atomic, to order it with other memory.
//
// # Limits
//
// The assembly relies on a few facts of the Go runtime that are checked when
// the package is first used; see docs/rseq.md. Where a check fails the next
// tier is used and RSEQ tells why.
package asm
