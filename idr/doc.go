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
// Where keys come from elsewhere, or are no integers, use a map, or [sync.Map]. Where nothing is
// removed, and growth can be announced, use a slice behind an atomic.Pointer. Where an id must
// never again stand for something else, do not use bare ids.
//
// # What a lookup gives
//
// The garbage collector keeps an object that was found alive. It does not keep it in use: it may
// be removed the moment after, and then be closed or recycled. If that matters, look it up in a
// read section of an [github.com/quiesce-go/quiesce/rcu.Domain] and remove it with
// [IDR.RemoveRetire], which frees the object, and its id, after all sections that can have seen
// it. If not, and most plain data is such, Find and Remove are all that is needed.
//
// # Progress
//
// Find is wait-free, of eleven steps at most. Next and iteration are lock-free, and take as many
// steps as there is to pass over. Methods that change something block each other on one mutex,
// which is held for some tens of nanoseconds, longer when the directory doubles and in Clear; no
// other code runs while it is held.
//
// # Memory ordering
//
// A call that changes what an id stands for synchronizes before each Find, Next and step of an
// iteration that sees the change, be it an object or its absence. Calls that change something are
// ordered among each other by the mutex. All operations on one id are linearizable; a call that
// is about many ids (iteration, Clear) is as if it were about one after the other. The end of a
// read section in which an object was found synchronizes before it is freed by RemoveRetire.
//
// # Costs
//
// A dense id takes 9.1 to 9.4 bytes besides its object, a lone one, wherever it is, 600 bytes. An
// IDR is 256 bytes, and must not be copied. Nothing is allocated but leaves of 64 ids, inner nodes
// for them, and the directory; leaves without ids are given back. docs/idr.md has measurements.
package idr
