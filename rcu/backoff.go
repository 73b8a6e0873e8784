package rcu

import (
	"context"
	"runtime"
	"time"

	"github.com/quiesce-go/quiesce/asm"
)

const (
	spins   = 256 // about 20 us
	yields  = 8
	napFrom = 20 * time.Microsecond
	napTo   = time.Millisecond

	expeditedYields = 128
	expeditedNapTo  = 50 * time.Microsecond
)

// A backoff paces the looks of a waiter at what it waits for: it spins, then lets other
// goroutines run, then sleeps longer and longer.
type backoff struct {
	yields int
	napTo  time.Duration

	tries int
	nap   time.Duration
	timer *time.Timer
}

func newBackoff(expedited bool) backoff {
	b := backoff{yields: yields, napTo: napTo}
	if expedited {
		b.yields = expeditedYields
		b.expedite()
	}
	b.reset()
	return b
}

// expedite makes the pauses shorter from now on.
func (b *backoff) expedite() { b.napTo = expeditedNapTo }

// sleeps reports whether the next pause is a sleep.
func (b *backoff) sleeps() bool { return b.tries >= spins+b.yields }

// reset starts again from the shortest pauses.
func (b *backoff) reset() {
	b.tries, b.nap = 0, 0
	if runtime.GOMAXPROCS(0) == 1 {
		b.tries = spins // Nobody else can run while this goroutine spins.
	}
}

// turning reports whether the next pause is the first to let others run, or to sleep.
func (b *backoff) turning() bool { return b.tries == spins || b.tries == spins+b.yields }

// pause waits a little. It returns ctx.Err() if ctx ends meanwhile.
func (b *backoff) pause(ctx context.Context) error {
	b.tries++
	switch {
	case b.tries <= spins:
		asm.Pause()
		return nil
	case b.tries <= spins+b.yields:
		runtime.Gosched()
		return ctx.Err()
	}
	b.nap = min(max(2*b.nap, napFrom), b.napTo)
	if ctx.Done() == nil {
		time.Sleep(b.nap)
		return nil
	}
	if b.timer == nil {
		b.timer = time.NewTimer(b.nap)
	} else {
		b.timer.Reset(b.nap)
	}
	select {
	case <-b.timer.C:
		return nil
	case <-ctx.Done():
		b.timer.Stop()
		return ctx.Err()
	}
}
