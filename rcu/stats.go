package rcu

import (
	"fmt"
	"sync/atomic"
	"time"
)

// Stats is a snapshot of what a [Domain] has done.
type Stats struct {
	GracePeriods uint64 // ended
	Stalls       uint64 // grace periods that were reported, see WithStallTimeout

	// Of the ended grace periods, from begin to end.
	LatencyLast, LatencyMax, LatencyMean time.Duration

	CallbacksQueued  uint64 // ever, by Call and its kin
	CallbacksRun     uint64 // begun to run
	CallbacksPending uint64 // queued and not run

	// OldestPending is about how long the oldest pending callback has been so.
	OldestPending time.Duration

	Readers int // not closed

	// ReaderMode says what sections do: "membarrier" where they execute no barrier, since
	// grace periods do it for them; "fenced" where they do; "race" in race builds, where they use
	// atomic operations that the race detector sees.
	ReaderMode string
}

// Stats returns a snapshot. Its fields are not read at one instant.
func (d *Domain) Stats() Stats {
	gp, w := &d.gp, &d.worker
	s := Stats{
		GracePeriods: gp.ended.Load(),
		Stalls:       gp.stalls.Load(),
		LatencyLast:  gp.last.Load(),
		LatencyMax:   gp.longest.Load(),
		CallbacksRun: atomic.LoadUint64(&w.ran), // before queued, or pending could be negative
		Readers:      int(d.readers.open.Load()),
		ReaderMode:   "membarrier",
	}
	s.CallbacksQueued = w.everQueued()
	s.CallbacksPending = s.CallbacksQueued - s.CallbacksRun
	if s.GracePeriods > 0 {
		s.LatencyMean = gp.total.Load() / time.Duration(s.GracePeriods)
	}
	// Younger ones last, since callbacks move on to the older meanwhile.
	oldest := d.oldestQueued()
	for _, t := range [2]int64{w.oldestWaiting.Load(), w.oldestRunning.Load()} {
		if t != 0 && (oldest == 0 || t < oldest) {
			oldest = t
		}
	}
	if oldest != 0 {
		s.OldestPending = since(oldest)
	}
	switch {
	case raceEnabled:
		s.ReaderMode = "race"
	case d.fenced:
		s.ReaderMode = "fenced"
	}
	return s
}

// String returns s as a JSON object, so that Stats is an [expvar.Var]. Times are in nanoseconds.
func (s Stats) String() string {
	return fmt.Sprintf(`{"grace_periods":%d,"stalls":%d,"latency_last":%d,"latency_max":%d,"latency_mean":%d,`+
		`"callbacks_queued":%d,"callbacks_run":%d,"callbacks_pending":%d,"oldest_pending":%d,"readers":%d,"reader_mode":%q}`,
		s.GracePeriods, s.Stalls, s.LatencyLast, s.LatencyMax, s.LatencyMean,
		s.CallbacksQueued, s.CallbacksRun, s.CallbacksPending, s.OldestPending, s.Readers, s.ReaderMode)
}

// String returns the Stats of d as a JSON object. With it a Domain is an [expvar.Var]:
// expvar.Publish("rcu", d) shows them as they are at each request.
func (d *Domain) String() string { return d.Stats().String() }
