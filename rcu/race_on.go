//go:build race

package rcu

import "runtime"

const raceEnabled = true

// unseen calls f, whose atomic operations make no edges for the race detector.
func unseen(f func()) {
	runtime.RaceDisable()
	f()
	runtime.RaceEnable()
}
