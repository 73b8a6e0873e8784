package rcu

// The places where tests can stop the protocol.
const (
	hookLoaded  = iota // a reader has loaded the number or the phase, and not published it
	hookQueued         // Call or StartPoll has left its wish, and not looked at the worker
	hookScan           // a grace period is about to look again at the readers it waits for
	hookDrained        // the worker found nothing to do and has not ended
	hookBarrier        // Barrier has looked for callbacks, and not yet decided for which pass it waits
	hookCount
)

// hooks is set by tests when a Domain is made. It turns the readers' fast paths off.
type hooks [hookCount]func()

func (d *Domain) hook(i int) {
	if d.hooks != nil && d.hooks[i] != nil {
		d.hooks[i]()
	}
}
