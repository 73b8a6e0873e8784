package rcutest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quiesce-go/quiesce/rcu"
)

// A torture is one Run.
type torture struct {
	cfg   Config
	d     *rcu.Domain
	s     Structure
	start time.Time

	// stop asks all workers to come to an end. ctx ends when that is not enough.
	stop    atomic.Bool
	stopped chan struct{}
	once    sync.Once // closes stopped
	ctx     context.Context
	cancel  context.CancelFunc

	gate   sync.RWMutex // locked by duels; others hold it while they are at work
	pool   pool
	finish chan func() // ends of sections, for another goroutine

	sections, retired, freed atomic.Uint64
	aloft                    atomic.Int64 // callbacks and functions of Go that were queued and have not ended
	ages                     [maxAge + 1]atomic.Uint64
	waits                    [primitives]atomic.Uint64

	mu       sync.Mutex // protects failures
	failures []string

	idle Object // that nobody changes

	_      [128]byte
	stores [1 << 17]uint64 // see dirty
}

// A worker is a goroutine that is watched.
type worker struct {
	t       *torture
	name    string
	line    int // its word in each line of stores
	dirtied uint
	choose  *rand.PCG

	beats atomic.Uint64
	doing atomic.Pointer[string]

	// The watchdog's.
	seen  uint64
	stuck time.Duration
}

// begin says what the worker does next. Whatever it does must end before long.
func (w *worker) begin(what string) {
	if p := w.doing.Load(); p == nil || *p != what {
		w.doing.Store(&what)
	}
	w.beats.Add(1)
}

// dirty fills the store buffer of this CPU with stores that take long, so that what a reader announces next is stuck
// behind them while its loads go ahead. They are to lines that its caches do not hold, since others had them meanwhile, or
// there are too many. For the same reason dirty loads nothing. Each worker has a word of its own in each line.
func (w *worker) dirty() {
	const (
		stores = 48
		line   = 16  // words
		page   = 512 // words; what is in another is not fetched in advance
	)
	if w.line >= line {
		return
	}
	w.dirtied++
	at := w.dirtied*stores*page + w.dirtied*line%page + uint(w.line)
	for range stores {
		w.t.stores[at%uint(len(w.t.stores))] = uint64(at)
		at += page
	}
}

// nothing is what a worker does that has ended.
const nothing = ""

// watchEvery is how often the watchdog looks. It counts its own looks rather than time, for a whole process
// may be stopped for a while.
const watchEvery = 10 * time.Millisecond

// Run tortures what cfg says, and returns what it did. The error is nil if nothing failed; it wraps
// ctx.Err() if ctx ended the torture before its time. In any case everything is brought to an end and
// checked that was begun, and no goroutine is left, except those that are stuck if that is the failure.
// Run panics if cfg makes no sense.
func Run(ctx context.Context, cfg Config) (Report, error) {
	cfg = cfg.withDefaults()
	t := &torture{cfg: cfg, d: cfg.Domain, s: cfg.Structure, start: time.Now(), stopped: make(chan struct{}), finish: make(chan func(), 16)}
	t.idle.stamp = 1
	before := engineGoroutines()
	if t.d == nil {
		t.d = rcu.New(cfg.Options...)
	}
	t.ctx, t.cancel = context.WithCancel(context.Background())
	defer t.cancel()
	calm := func() {}
	if cfg.Storm {
		calm = storm()
	}
	early := t.work(ctx)
	calm()
	if !t.failed() {
		t.settle(before)
	}
	r := t.report()
	switch {
	case len(r.Failures) > 0:
		return r, fmt.Errorf("rcutest: %s (seed %d)", r.Failures[0], r.Seed)
	case early:
		return r, fmt.Errorf("rcutest: Run: %w", ctx.Err())
	}
	return r, nil
}

// work has the workers do their work until it is time to stop, and reports whether ctx ended it early.
func (t *torture) work(ctx context.Context) (early bool) {
	var readers, updaters, duels, finisher sync.WaitGroup
	var workers []*worker
	add := func(w *worker, name string) {
		w.t, w.name, w.line = t, name, len(workers)
		w.choose = rand.NewPCG(t.cfg.Seed, uint64(len(workers)))
		w.begin("starting")
		workers = append(workers, w)
	}
	duel, rivals := new(updater), [2]*reader{new(reader), new(reader)}
	add(&duel.worker, "the updater of a duel")
	for _, r := range rivals {
		add(&r.worker, "a reader of a duel")
		r.begin(nothing)
	}
	duels.Go(func() { duel.duels(rivals) })
	for i := range t.cfg.Updaters {
		u := new(updater)
		add(&u.worker, fmt.Sprintf("updater %d", i))
		updaters.Go(u.run)
	}
	for i := range t.cfg.Readers {
		r := new(reader)
		add(&r.worker, fmt.Sprintf("reader %d", i))
		readers.Go(r.run)
	}
	finisher.Go(func() {
		for f := range t.finish {
			f()
		}
	})
	updated, ended := make(chan struct{}), make(chan struct{})
	go func() {
		updaters.Wait()
		close(updated)
		readers.Wait()
		duels.Wait()
		close(t.finish)
		finisher.Wait()
		close(ended)
	}()

	var timeUp <-chan time.Time
	if t.cfg.Duration > 0 {
		timeUp = time.After(t.cfg.Duration)
	}
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	lastProgress := time.Now()
	abandoned := time.Duration(0)
	for done := ctx.Done(); ; {
		select {
		case <-ended:
			return early
		case <-updated: // Readers go on until then: they are what updaters wait for.
			t.end()
			updated = nil
		case <-timeUp:
			t.end()
		case <-done:
			endless := t.cfg.Duration < 0 && t.cfg.Updates == 0
			early = !endless && !t.stop.Load()
			t.end()
			done = nil
		case <-tick.C:
			t.watch(workers)
			if t.ctx.Err() != nil {
				if abandoned += watchEvery; abandoned > time.Second {
					return early // Somebody is stuck for good.
				}
			}
			if t.cfg.Progress != nil && time.Since(lastProgress) >= time.Second {
				lastProgress = time.Now()
				t.cfg.Progress(t.report())
			}
		}
	}
}

// watch fails if one of the workers is stuck, and then has all give up.
func (t *torture) watch(workers []*worker) {
	for _, w := range workers {
		if beats := w.beats.Load(); beats != w.seen || *w.doing.Load() == nothing {
			w.seen, w.stuck = beats, 0
			continue
		}
		if w.stuck += watchEvery; w.stuck > t.cfg.Patience && t.ctx.Err() == nil {
			t.fail("%s is stuck for %v in: %s\n%s", w.name, t.cfg.Patience, *w.doing.Load(), stacks())
			t.cancel()
		}
	}
}

// settle checks that nothing is left when all workers have ended.
func (t *torture) settle(before map[string]string) {
	ctx, cancel := context.WithTimeout(context.Background(), t.cfg.Patience)
	defer cancel()
	if err := t.d.Barrier(ctx); err != nil {
		t.fail("the last Barrier: %v", err)
	}
	// A Structure that gives an object twice has fewer outstanding than there are: they must not
	// find the Domain closed.
	for t.aloft.Load() > 0 {
		if ctx.Err() != nil {
			t.fail("%d callbacks have not run", t.aloft.Load())
			return
		}
		time.Sleep(time.Millisecond)
	}
	if n := t.retired.Load() - t.freed.Load(); n != 0 {
		t.fail("%d objects were taken out and never freed", n)
	}
	if t.cfg.Domain != nil {
		return // What else is in it is not ours.
	}
	if err := t.d.Close(ctx); err != nil {
		t.fail("%v", err)
	}
	if s := t.d.Stats(); s.CallbacksPending != 0 || s.CallbacksRun != s.CallbacksQueued {
		t.fail("of %d callbacks %d have run and %d are pending after Close", s.CallbacksQueued, s.CallbacksRun, s.CallbacksPending)
	}
	for {
		left := ""
		for id, stack := range engineGoroutines() {
			if _, old := before[id]; !old {
				left = stack
			}
		}
		switch {
		case left == "":
			return
		case ctx.Err() != nil:
			t.fail("a goroutine is left:\n%s", left)
			return
		}
		time.Sleep(time.Millisecond)
	}
}

func (t *torture) report() Report {
	r := Report{
		Seed:     t.cfg.Seed,
		Elapsed:  time.Since(t.start),
		Sections: t.sections.Load(),
		Updates:  t.retired.Load(),
		Freed:    t.freed.Load(),
		Waits:    make(map[string]uint64),
		Stats:    t.d.Stats(),
	}
	for i := range r.Ages {
		r.Ages[i] = t.ages[i].Load()
	}
	for p := range primitives {
		r.Waits[primitiveNames[p]] = t.waits[p].Load()
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	r.Failures = append(r.Failures, t.failures...)
	return r
}

// end asks all workers to come to an end.
func (t *torture) end() {
	t.once.Do(func() {
		t.stop.Store(true)
		close(t.stopped)
	})
}

// maxFailures is how many failures are kept. One fault makes many.
const maxFailures = 10

// fail notes a failure, and has the torture end.
func (t *torture) fail(format string, args ...any) {
	t.end()
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.failures) < maxFailures {
		t.failures = append(t.failures, fmt.Sprintf(format, args...))
	}
}

func (t *torture) failed() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.failures) > 0
}

// engineGoroutines returns the stacks of goroutines that Domains have started, by the line that names them.
func engineGoroutines() map[string]string {
	found := make(map[string]string)
	for stack := range strings.SplitSeq(stacks(), "\n\n") {
		id, _, _ := strings.Cut(stack, " [")
		if strings.Contains(stack, "quiesce/rcu.(*Domain).work") || strings.Contains(stack, "created by github.com/quiesce-go/quiesce/rcu.") {
			found[id] = stack
		}
	}
	return found
}

func stacks() string {
	for n := 1 << 16; ; n *= 2 {
		buf := make([]byte, n)
		if n := runtime.Stack(buf, true); n < len(buf) {
			return string(buf[:n])
		}
	}
}
