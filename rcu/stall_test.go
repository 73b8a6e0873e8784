package rcu_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quiesce-go/quiesce/rcu"
)

// A stalls collects reports.
type stalls struct {
	mu  sync.Mutex
	all []rcu.Stall
}

func (s *stalls) handle(r rcu.Stall) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all = append(s.all, r)
}

func (s *stalls) get() []rcu.Stall {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.all)
}

// Each grace period that does not end in time is reported once, however long it takes and whoever waits
// for it, with what it waits for. Twin: nagging.
func TestStall(t *testing.T) {
	for _, m := range modes {
		for _, debug := range []bool{false, true} {
			name := m.name
			if debug {
				name += "/debug"
			}
			t.Run(name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { stall(t, debug, m.opts...) })
			})
		}
	}
}

func stall(t *testing.T, debug bool, opts ...rcu.Option) {
	var got stalls
	opts = append(opts, rcu.WithStallTimeout(time.Second), rcu.WithStallHandler(got.handle))
	if debug {
		opts = append(opts, rcu.WithDebug())
	}
	d := rcu.New(opts...)
	r1, r2 := makeStalled(d), makeStalled(d)
	idle := d.NewReader()
	idle.Lock()
	idle.Unlock()
	g := lockStalled(d)
	time.Sleep(time.Hour) // A long section is no stall while nobody waits.
	if got.get() != nil {
		t.Fatalf("reported while nobody waits: %v", got.get())
	}
	for range 3 {
		d.Call(func() {})
	}
	// Who waits for what is in progress gives up, and others come.
	for range 5 {
		ctx, cancel := context.WithTimeout(bg, 300*time.Millisecond)
		var err error
		<-async(func() { err = d.Synchronize(ctx) }) // in a goroutine without a section
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("Synchronize returned %v", err)
		}
		cancel()
	}
	late := d.ReadLock() // is not waited for, unless the old ones were in both phases
	time.Sleep(3 * time.Second)
	reports := got.get()
	if len(reports) != 1 || d.Stats().Stalls != 1 {
		t.Fatalf("%d reports: %v", len(reports), reports)
	}
	s := reports[0]
	if s.Waited < time.Second || s.Waited > 1100*time.Millisecond || s.Pending != 3 || s.GracePeriod == 0 {
		t.Errorf("%+v", s)
	}
	readers, guards, open := 0, 0, int64(0)
	for _, sec := range s.Sections {
		switch {
		case sec.Reader:
			readers++
			if !strings.HasPrefix(sec.Created, "github.com/quiesce-go/quiesce/rcu_test.makeStalled\n") {
				t.Errorf("a Reader made at %q", sec.Created)
			}
			if debug && !strings.HasPrefix(sec.Began, "github.com/quiesce-go/quiesce/rcu_test.makeStalled\n") {
				t.Errorf("a Reader's section that began at %q", sec.Began)
			}
		default:
			guards++
			if !strings.HasPrefix(sec.Began, "github.com/quiesce-go/quiesce/rcu_test.lockStalled\n") || sec.Created != "" {
				t.Errorf("a Guard's section that began at %q", sec.Began)
			}
		}
		if debug != (sec.For >= time.Hour) || debug != (sec.Goroutine != 0) || sec.For < s.Waited {
			t.Errorf("%+v", sec)
		}
	}
	for _, p := range s.Phases {
		if p.Awaited {
			open += p.Guards
		}
	}
	want := 0
	if debug {
		want = 1
	}
	if readers != 2 || guards != want || open != 1 {
		t.Errorf("the report has %d Readers, %d of one Guard, and %d open Guards: %v", readers, guards, open, s)
	}
	for _, want := range []string{"waits for 2 Readers made at\n\tgithub.com", "rcu_test.makeStalled", "stall_test.go:", "3 callbacks", "open Guards of phase"} {
		if text := s.String(); !strings.Contains(text, want) {
			t.Errorf("no %q in the report: %s", want, text)
		}
	}
	late.Unlock()
	r1.Unlock()
	r2.Unlock()
	g.Unlock()
	must(t, d.Barrier(bg))
	g = d.ReadLock()
	d.StartPoll()
	time.Sleep(2 * time.Second)
	if n := len(got.get()); n != 2 {
		t.Errorf("%d reports after another stalled grace period", n)
	}
	g.Unlock()
	must(t, d.Close(bg))
	r1.Close()
	r2.Close()
	idle.Close()
}

//go:noinline
func makeStalled(d *rcu.Domain) *rcu.Reader {
	r := d.NewReader()
	r.Lock()
	return r
}

//go:noinline
func lockStalled(d *rcu.Domain) rcu.Guard { return d.ReadLock() }

// Without a handler a stall is a warning in the log, and without a timeout it is nothing.
func TestStall_Log(t *testing.T) {
	for _, timeout := range []time.Duration{time.Second, 0, -1} {
		synctest.Test(t, func(t *testing.T) {
			var log safeBuilder
			d := rcu.New(rcu.WithLogger(slog.New(slog.NewTextHandler(&log, nil))), rcu.WithStallTimeout(timeout))
			r := makeStalled(d)
			d.StartPoll()
			time.Sleep(2 * time.Second)
			s := log.String()
			if timeout <= 0 && s != "" {
				t.Errorf("logged with a timeout of %v: %s", timeout, s)
			}
			for _, want := range []string{"level=WARN", "stalled", "makeStalled"} {
				if timeout > 0 && !strings.Contains(s, want) {
					t.Errorf("no %q in the log: %s", want, s)
				}
			}
			r.Unlock()
			r.Close()
			must(t, d.Close(bg))
		})
	}
}

// A handler may wait for the Domain, and end the section that it is told of.
func TestStall_Handler(t *testing.T) {
	var d *rcu.Domain
	var r *rcu.Reader
	ended := make(chan struct{})
	d = rcu.New(rcu.WithStallTimeout(time.Millisecond), rcu.WithStallHandler(func(s rcu.Stall) {
		ctx, cancel := context.WithTimeout(bg, time.Millisecond)
		defer cancel()
		d.Synchronize(ctx)
		r.Unlock()
		d.Synchronize(bg)
		close(ended)
	}))
	r = makeStalled(d)
	mustEnd(t, async(func() { d.Synchronize(bg) }), "Synchronize")
	mustEnd(t, ended, "the handler")
	r.Close()
}

// With reports of Readers that come and go, the race detector looks at how stacks are read.
func TestStall_BesideReaders(t *testing.T) {
	long := 100 * time.Millisecond
	if testing.Short() {
		long /= 3
	}
	var reports atomic.Int64
	d := rcu.New(rcu.WithStallTimeout(time.Nanosecond), rcu.WithStallHandler(func(s rcu.Stall) {
		for _, sec := range s.Sections {
			if !strings.Contains(sec.Created, "TestStall_BesideReaders") {
				t.Errorf("a Reader made at %q", sec.Created)
			}
		}
		reports.Add(1)
	}))
	var stop atomic.Bool
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for !stop.Load() {
				r := d.NewReader()
				r.Lock()
				time.Sleep(100 * time.Microsecond)
				r.Unlock()
				r.Close()
			}
		})
	}
	start := time.Now()
	for time.Since(start) < long {
		must(t, d.Synchronize(bg))
	}
	eventually(t, "a report", func() bool {
		d.Synchronize(bg)
		return reports.Load() > 0
	})
	stop.Store(true)
	wg.Wait()
}

func debugDomain(opts ...rcu.Option) (*rcu.Domain, *safeBuilder) {
	var log safeBuilder
	return rcu.New(append(opts, rcu.WithDebug(), rcu.WithLogger(slog.New(slog.NewTextHandler(&log, nil))))...), &log
}

// With WithDebug a second Unlock panics at once, with both stacks.
func TestDebug_DoubleUnlock(t *testing.T) {
	for _, m := range modes {
		t.Run(m.name, func(t *testing.T) {
			d, _ := debugDomain(m.opts...)
			other := d.ReadLock() // With this one open, no grace period would notice.
			g := lockStalled(d)
			unlockFirst(g)
			msg := panics(g.Unlock)
			for _, want := range []string{"rcu: Unlock of a Guard that was unlocked already", "lockStalled", "unlockFirst"} {
				if !strings.Contains(msg, want) {
					t.Errorf("no %q in the panic: %s", want, msg)
				}
			}
			holds2(t, d, "the other Guard, after a second Unlock")
			other.Unlock()
			must(t, d.Synchronize(bg))
			if msg := panics(func() { d.NewReader().Unlock() }); !strings.Contains(msg, "holds no section") {
				t.Errorf("Unlock of a Reader without a section panicked with %q", msg)
			}
			must(t, d.Close(bg))
			if msg := panics(func() { d.ReadLock() }); msg != "rcu: ReadLock of a closed Domain" {
				t.Errorf("ReadLock of a closed Domain panicked with %q", msg)
			}
		})
	}
}

//go:noinline
func unlockFirst(g rcu.Guard) { g.Unlock() }

// holds2 is holds, in a goroutine that has no section.
func holds2(t *testing.T, d *rcu.Domain, what string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(bg, blocked)
	defer cancel()
	var err error
	mustEnd(t, async(func() { err = d.Synchronize(ctx) }), what)
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("%s: Synchronize returned %v", what, err)
	}
}

// With WithDebug a wait in a section of the same goroutine fails at once, and says which section it is.
// Twin: nodeadlock.
func TestFault_R10_Debug(t *testing.T) {
	each(t, func(t *testing.T, k kind, opts ...rcu.Option) {
		d, log := debugDomain(opts...)
		s := lockKind(k, d)
		must(t, d.Barrier(bg)) // Nothing is queued, so it need not wait.
		ran := make(chan bool)
		d.Call(func() { close(ran) })
		c := d.Cookie()
		ctx, cancel := context.WithTimeout(bg, soon/2)
		defer cancel()
		for name, f := range map[string]func(context.Context) error{
			"Synchronize":          d.Synchronize,
			"SynchronizeExpedited": d.SynchronizeExpedited,
			"Barrier":              d.Barrier,
			"Close":                d.Close,
			"Wait":                 func(ctx context.Context) error { return d.Wait(ctx, c) },
		} {
			err := f(ctx)
			if !errors.Is(err, rcu.ErrDeadlock) || !strings.Contains(err.Error(), "lockKind") {
				t.Errorf("%s in a section returned %v", name, err)
			}
			if !strings.Contains(log.String(), name+" waits for a section") || !strings.Contains(log.String(), "TestFault_R10_Debug") {
				t.Errorf("%s in a section logged: %s", name, log.String())
			}
		}
		// Others may wait, and so may this one for what has ended.
		other := async(func() { d.Synchronize(bg) })
		mustBlock(t, other, "Synchronize of another goroutine")
		s.Unlock()
		mustEnd(t, other, "Synchronize of another goroutine")
		<-ran
		must(t, d.Synchronize(bg))
		s = lockKind(k, d)
		must(t, d.Wait(bg, c))
		s.Unlock()
		must(t, d.Close(bg))
	})
}

//go:noinline
func lockKind(k kind, d *rcu.Domain) section { return k.lock(d) }

// With WithDebug a Guard that nobody can unlock is logged, and its section goes on.
func TestDebug_DroppedGuard(t *testing.T) {
	d, log := debugDomain()
	g := d.ReadLock()
	mustEnd(t, async(func() { lockStalled(d) }), "a goroutine that drops a Guard")
	eventually(t, "a report of the dropped Guard", func() bool {
		rcu.Collect()
		return log.String() != ""
	})
	if s := log.String(); !strings.Contains(s, "a Guard was dropped") || !strings.Contains(s, "lockStalled") || strings.Count(s, "level=") != 1 {
		t.Errorf("logged: %s", s)
	}
	g.Unlock()
	holds2(t, d, "a dropped Guard")
}

// With WithDebug the report of a dropped Reader says where its section began, too.
func TestDebug_DroppedReader(t *testing.T) {
	d, log := debugDomain()
	mustEnd(t, async(func() {
		r := d.NewReader()
		lockReader(r)
	}), "a goroutine that drops a Reader")
	eventually(t, "a report of the dropped Reader", func() bool {
		rcu.Collect()
		return log.String() != ""
	})
	for _, want := range []string{"a Reader was dropped", "TestDebug_DroppedReader", "lockReader"} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("no %q in the log: %s", want, log.String())
		}
	}
	must(t, d.Synchronize(bg))
	must(t, d.Close(bg))
}

//go:noinline
func lockReader(r *rcu.Reader) { r.Lock() }

// A logHandler calls itself with each message.
type logHandler func(message string)

func (f logHandler) Enabled(context.Context, slog.Level) bool      { return true }
func (f logHandler) Handle(_ context.Context, r slog.Record) error { f(r.Message); return nil }
func (f logHandler) WithAttrs([]slog.Attr) slog.Handler            { return f }
func (f logHandler) WithGroup(string) slog.Handler                 { return f }

// The handler of the log may use the Domain that reports. It is called by the goroutine that runs cleanups, or by
// one in a section, and what it waits for must not be what it is called in the middle of. Twin: lockedlog.
func TestDebug_LogUsesDomain(t *testing.T) {
	var d *rcu.Domain
	reader, guard := make(chan struct{}), make(chan struct{})
	own := 0
	d = rcu.New(rcu.WithDebug(), rcu.WithLogger(slog.New(logHandler(func(message string) {
		switch {
		case strings.Contains(message, "a Reader was dropped"):
			must(t, d.Synchronize(bg))
			close(reader)
		case strings.Contains(message, "a Guard was dropped"):
			d.ReadLock().Unlock()
			close(guard)
		case strings.Contains(message, "waits for a section of its own goroutine"):
			own++
			if err := d.Synchronize(bg); !errors.Is(err, rcu.ErrDeadlock) {
				t.Errorf("Synchronize of a handler in a section of its goroutine returned %v", err)
			}
		}
	}))))
	g := d.ReadLock()
	for n := range 2 {
		if err := d.Synchronize(bg); !errors.Is(err, rcu.ErrDeadlock) || own != n+1 {
			t.Errorf("Synchronize in a section returned %v, logged %d times", err, own)
		}
	}
	g.Unlock()
	mustEnd(t, async(func() { dropReader(d) }), "a goroutine that drops a Reader")
	async(rcu.Collect) // which waits for the cleanup
	mustEnd(t, reader, "a handler that calls Synchronize about a dropped Reader")
	mustEnd(t, async(func() { lockStalled(d) }), "a goroutine that drops a Guard")
	async(rcu.Collect)
	mustEnd(t, guard, "a handler that calls ReadLock about a dropped Guard")
}

// A Domain with WithDebug is collected like any other.
func TestDebug_Collected(t *testing.T) {
	gone := make(chan struct{})
	func() {
		d, _ := debugDomain()
		d.ReadLock().Unlock()
		r := d.NewReader()
		r.Lock()
		r.Unlock()
		r.Close()
		must(t, d.Synchronize(bg))
		runtime.AddCleanup(d, func(c chan struct{}) { close(c) }, gone)
	}()
	eventually(t, "the Domain is collected", func() bool {
		rcu.Collect()
		select {
		case <-gone:
			return true
		default:
			return false
		}
	})
}

// Stats and Domain are expvar.Vars (examples/expvar), which have to be JSON.
func TestStats_Expvar(t *testing.T) {
	d := rcu.New()
	d.Call(func() {})
	must(t, d.Barrier(bg))
	for _, v := range []fmt.Stringer{d, d.Stats()} {
		var got map[string]any
		if err := json.Unmarshal([]byte(v.String()), &got); err != nil {
			t.Fatalf("%v: %s", err, v)
		}
		if got["callbacks_run"] != 1.0 || got["callbacks_pending"] != 0.0 || got["reader_mode"] != d.Stats().ReaderMode || len(got) != 11 {
			t.Errorf("%v", got)
		}
	}
}
