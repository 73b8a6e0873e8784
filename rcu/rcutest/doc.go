// Package rcutest tortures package rcu and the structures that are built on it.
//
// A torture has goroutines read a structure in sections of every kind and length,
// while others take objects out of it and have grace periods begin and end in every
// way that an [rcu.Domain] knows. Each object has an age: 0 while readers can find it, 1 once
// it was taken out, and one more with each grace period since. When a section
// ends, the objects that it found must be of age 0 or 1. An age of 2 means that a grace
// period did not wait for the section, or that the structure let readers find what it had
// given up.
//
// A torture also fails if an object changes in a section that holds it, or is found
// before it is ready or after it was freed; if a callback is lost, or runs twice; if a Barrier
// returns before its callbacks ran, or in a callback; if something waits for ever; and, in a Domain of its own, if
// callbacks stay pending or a goroutine is left. Objects are written by plain stores when they
// are freed, so that the race detector checks every edge in between.
//
// # Torturing a structure
//
// What [Config.Structure] has is two methods: one puts an object in and takes one
// out, the other finds some. In a test:
//
//	func TestTorture(t *testing.T) {
//		rcutest.Test(t, rcutest.Config{Structure: new(table), Duration: time.Second})
//	}
//
// Without a Structure it is the Domain that is tortured, as `quiesce torture` does from the
// command line.
//
// # Seeds
//
// What the goroutines choose to do comes from a seed. The operations of each are
// the same in each run with that seed; when they run is not.
//
// # Limits
//
// That a torture finds nothing proves nothing, even though it finds most faults that
// were put into the engine on purpose: `quiesce torture -mutant` has the list. For some it
// needs two CPUs. It uses all there are.
package rcutest
