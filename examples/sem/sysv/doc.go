// Package sysv has the semaphores of System V (semget, semop, semctl) inside a process: arrays of
// semaphores that are known by ids, belong to somebody and have permissions, and on which several
// operations are done at once, or waited for until they can be.
//
// # What it shows
//
// How objects that are found by a number are locked. Calls find an array in an RCU read section, look
// at all that can be looked at, and lock the array for the operation alone; before Linux 3.10, and
// here in a Table by [NewLocked], they locked it first. The order is that of type visit, which is the
// heart of this package, and the only place where the two differ.
//
// The ids are handles of an [idr.Registry]: one of an array that was removed never names another. An
// array that was removed is given up at once; its memory is freed, which here means overwritten, when
// the last call that found it, and the last one that sleeps in it, are over.
//
// # What is different from System V
//
// Calls are methods of a [Thread], which has a Reader for its read sections. Who waits can be
// interrupted, or have a deadline, by a context. An [Owner] is a process, and exits by [Owner.Exit].
// There is no namespace, no audit and no undo shared between processes. semctl is a method for each
// command.
//
// # Concurrency
//
// A [Table] may be used by any number of goroutines, each with a Thread of its own. Op is atomic with
// all other calls for the array. What a thread does before it gives a semaphore synchronizes before
// the return of the Op that takes it.
//
// # Costs
//
// An Op that does not wait allocates nothing, and is O(operations + those who sleep in the array). An
// array takes about 400 bytes, and 16 for each semaphore.
package sysv
