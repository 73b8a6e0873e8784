package seqlock

import "sync"

// Lock is a [Count] with a mutex for its writers, Linux's seqlock_t. It guards
// data that its user keeps elsewhere and loads and stores with sync/atomic.
//
// The zero Lock is ready and unlocked. A Lock must not be copied after first
// use. All methods may be called from any number of goroutines. A Lock is a
// [sync.Locker]; between Lock and Unlock the caller is the only writer.
//
// Memory ordering is that of Count, and that of [sync.Mutex] among writers.
// Lock may block, readers wait for a writer that is inside. Nothing allocates.
type Lock struct {
	mu    sync.Mutex
	count Count // written by who holds mu; odd only while mu is held
}

// Lock takes the lock and begins a write.
func (l *Lock) Lock() {
	l.mu.Lock()
	l.count.WriteBegin()
}

// Unlock ends the write and releases the lock. It panics if the lock is not
// locked. As with [sync.Mutex], another goroutine than the locker may call it.
func (l *Lock) Unlock() {
	if s := l.count.seq.Load(); s&1 == 0 {
		panic("seqlock: Unlock of a Lock that is not locked")
	}
	l.count.WriteEnd()
	l.mu.Unlock()
}

// Begin starts a read and returns the sequence to give to Retry. It waits
// while a writer holds the lock, soon by blocking on it; a caller that holds
// the lock itself would wait for ever.
func (l *Lock) Begin() uint64 {
	if s, ok := l.count.TryBegin(); ok {
		return s
	}
	return l.begin()
}

func (l *Lock) begin() uint64 {
	for i := range spins {
		if s, ok := l.count.TryBegin(); ok {
			return s
		}
		relax(i)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.count.seq.Load() // Even, as no writer is inside.
}

// TryBegin is Begin for a reader that must not wait: it reports false while a
// writer holds the lock, and then returns a sequence for which Retry is true.
func (l *Lock) TryBegin() (seq uint64, ok bool) { return l.count.TryBegin() }

// Retry reports whether a writer has taken the lock since the Begin that
// returned seq. It never waits.
func (l *Lock) Retry(seq uint64) bool { return l.count.Retry(seq) }

// tries is how many attempts a reader makes before it keeps writers out. With
// a writer in half of the time, one reader in 65,000 gets that far.
const tries = 16

// Read calls fn until no writer was inside while fn ran. After some attempts it
// takes the lock for the last one, so that writers cannot keep it for ever.
//
// fn may run many times, and all but the last time may see data that a writer
// has changed in part. It must load what it needs with sync/atomic, into
// variables of its own, and do nothing else: the caller looks at them when Read
// has returned. If fn panics, or ends its goroutine, so does Read, and the lock
// is free. Calling fn costs nothing else; a closure may allocate in the caller.
func (l *Lock) Read(fn func()) {
	for range tries {
		s := l.Begin()
		fn()
		if !l.Retry(s) {
			return
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	fn()
}
