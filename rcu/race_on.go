//go:build race

package rcu

const raceEnabled = true
