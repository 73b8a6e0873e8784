// Package idr gives out small integers for objects, and finds an object by its integer without a
// lock.
//
// # When to use it
//
// Use [IDR] where something outside has to name an object of the program by a number: connection
// and stream ids, file-like handles, timers, sessions, ids on the wire. Lookups are the hot path:
// they take no lock, write nothing, and cost little more than indexing a slice, also while other
// goroutines add and remove. Ids are as small as can be, so they are dense, and can themselves be
// indexes and bits.
//
// Use [Registry] where the number leaves the program, or is kept by who may come late with it: a
// [Handle] never names another object than the one it was given out for. Its objects have a lock
// and references, and are released when nobody uses them any more. It is the heavier tool, of an
// allocation for each object.
//
// Use [IDA] where there is no object, but a number that nobody else has: indexes into something
// that is elsewhere, ports, parts of names. It takes a bit for each id.
//
// Where keys come from elsewhere, or are no integers, use a map, or [sync.Map]. Where nothing is
// removed, and growth can be announced, use a slice behind an atomic.Pointer.
//
// # What a lookup gives
//
// The garbage collector keeps an object that was found alive. It does not keep it in use: it may be
// removed the moment after, and then be closed or recycled. If that matters, look it up in a read
// section of an [github.com/quiesce-go/quiesce/rcu.Domain] and remove it with [IDR.RemoveRetire],
// which frees the object, and its id, after all sections that can have seen it. If not, and most
// plain data is such, Find and Remove are all that is needed. A Registry always works that way: it
// has its Domain from the beginning.
//
// # Progress
//
// Find, Contains and Obtain are wait-free, of some thirteen steps at most. Next and iteration are
// lock-free, and take as many steps as there is to pass over. Methods that change something block
// each other on one mutex, which is held for some tens of nanoseconds, longer when the directory
// doubles, in AllocN and in Clear; no other code runs while it is held. The lock of an Object is
// another matter: it is its users'.
//
// # Memory ordering
//
// A call that changes what an id stands for synchronizes before each Find, Contains, Obtain, Next
// and step of an iteration that sees the change, be it an object or its absence. Calls that change
// something are ordered among each other by the mutex. All operations on one id are linearizable; a
// call that is about many ids (iteration, Next of an IDA, AllocN, Clear) is as if it were about one
// after the other. The end of a read section in which an object was found synchronizes before it is
// freed by RemoveRetire, or released by a Registry, and so does each Put.
//
// # Costs
//
// A dense id takes 9.1 to 9.4 bytes besides its object, a lone one, wherever it is, 600 bytes. In
// an IDA a dense id takes 1.1 bits. An object of a Registry takes 128 bytes, and its slot 17. An IDR
// is 272 bytes, and nothing here may be copied. Nothing is allocated but leaves of 64 ids, inner
// nodes for them, and the directory; leaves without ids are given back, slots of a Registry are
// not. docs/idr.md has measurements.
package idr
