//go:build !race

package rcu

const raceEnabled = false

// unseen calls f.
func unseen(f func()) { f() }
