package asm

import "time"

// began is when the process looked at both clocks for the first time.
var began = struct {
	cycles uint64
	at     time.Time
}{Cycles(), time.Now()}

// CyclesPerSecond returns how fast Cycles counts, for those who want to show a
// difference of two of its values as a time. It is measured against the monotonic
// clock since the process began, so it is the better the later it is called. Within
// the first ten milliseconds it sleeps until they are over. It does not allocate.
func CyclesPerSecond() float64 {
	for {
		cycles, took := Cycles()-began.cycles, time.Since(began.at)
		if took >= 10*time.Millisecond && cycles > 0 {
			return float64(cycles) / took.Seconds()
		}
		time.Sleep(10*time.Millisecond - took)
	}
}
