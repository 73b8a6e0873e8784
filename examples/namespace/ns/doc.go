// Package ns has namespaces as an operating system has them, inside a process: each owns objects that are
// known by small ids, and a mount that outsiders may be walking through; tasks create, enter and leave
// them, and the last one to leave has the namespace torn down.
//
// It is useful where a program has tenants, sessions or jobs that come and go together with what belongs to
// them, and to be read, as an example of three ways to wait for readers on the way out.
//
// # How a namespace goes
//
// A walk is a read section: it finds the namespace by its id and uses the mount until it ends, without being
// a member and without writing to anything that others write to. So when the last member has left, the
// namespace is taken out of reach, then a grace period has to pass, and then the mount is unmounted, the
// objects are released and the id may be given out again. A [Strategy] says who waits for that:
//
//   - [Synchronize]: the task that leaves, for a grace period of its own, one task after the other;
//   - [Shared]: the task that leaves, in a grace period that it shares with all who wait at the time;
//   - [Deferred]: nobody. The rest is done in a goroutine of its own, by rcu.Domain.Go.
//
// # Memory ordering
//
// A Leave synchronizes before the teardown that it causes, if another task left last too; and so does the
// end of each walk of that namespace. A teardown synchronizes before the return of a [Table.Barrier] that
// waited for it. Create synchronizes before the Enter or Walk that finds its namespace.
//
// # Costs
//
// Walk and Enter are lock-free and O(1), and allocate nothing. Leave costs an atomic decrement, and for the
// last one the teardown, or what hands that over.
package ns
