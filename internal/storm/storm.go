// Package storm makes life hard for the threads of a test: while a storm blows,
// signals, garbage collections, changes of GOMAXPROCS and moves between CPUs
// interrupt whatever the test does, and threads come and go beside it. What
// depends on not being interrupted, on staying on one CPU, or on a thread's
// state being that of its predecessor, breaks.
//
//	stop := storm.Start(t, storm.Threads(func() { c.Add(1) }))
//	... count ...
//	stop()
//	... check the sum ...
//
// On Linux the signals and the moves come from a process of their own, so that
// the Go scheduler of the test cannot hold them back. It is the test binary
// again, which finds out in this package's init what it is for. Elsewhere, and
// where a program cannot start itself, there are none, and the log says so.
package storm

import (
	"fmt"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// A Part is one of the things that a storm does.
type Part uint

const (
	Signals Part = 1 << iota // SIGURG to every thread of the process, as often as goes
	Moves                    // threads are tied to a CPU, and to another one, and let go
	GC                       // one collection after the other
	Procs                    // GOMAXPROCS is 1, then 4, then 1
	Exits                    // threads start, run the function of Threads, and end
)

// An Option changes what a storm does.
type Option func(*storm)

// Without leaves parts out.
func Without(parts Part) Option { return func(s *storm) { s.parts &^= parts } }

// Threads has every thread that comes and goes run f. It may run on several
// threads at once. Without a function there are no such threads.
func Threads(f func()) Option { return func(s *storm) { s.thread = f } }

type storm struct {
	parts  Part
	thread func()

	stop  chan struct{}
	tasks sync.WaitGroup

	collections, changes, threads atomic.Int64
}

// Start lets a storm begin. It ends when stop is called, and with the test. After
// stop has returned, no function of Threads runs any more and GOMAXPROCS and the
// threads' CPUs are what they were. What the storm did is logged. Only one storm
// may blow at a time.
func Start(t testing.TB, opts ...Option) (stop func()) {
	t.Helper()
	s := &storm{parts: Signals | Moves | GC | Procs | Exits, stop: make(chan struct{})}
	for _, o := range opts {
		o(s)
	}
	attacked := s.attack(t)
	s.run(GC, func() {
		runtime.GC()
		s.collections.Add(1)
		s.pause(time.Millisecond)
	})
	before := runtime.GOMAXPROCS(0)
	procs := 1
	s.run(Procs, func() {
		runtime.GOMAXPROCS(procs)
		procs = 5 - procs
		s.changes.Add(1)
		s.pause(time.Millisecond)
	})
	if s.thread != nil {
		s.run(Exits, func() {
			done := make(chan struct{})
			go func() {
				defer close(done)
				runtime.LockOSThread() // never undone, so the thread ends with the goroutine
				s.thread()
			}()
			<-done
			s.threads.Add(1)
		})
	}
	stop = sync.OnceFunc(func() {
		close(s.stop)
		s.tasks.Wait()
		what := attacked()
		if s.parts&Procs != 0 {
			runtime.GOMAXPROCS(before)
		}
		t.Logf("storm: %s, %d collections, %d changes of GOMAXPROCS, %d threads that ended",
			what, s.collections.Load(), s.changes.Load(), s.threads.Load())
	})
	t.Cleanup(stop)
	return stop
}

// run repeats f until the storm ends, if p is a part of it.
func (s *storm) run(p Part, f func()) {
	if s.parts&p == 0 {
		return
	}
	s.tasks.Go(func() {
		for {
			select {
			case <-s.stop:
				return
			default:
				f()
			}
		}
	})
}

func (s *storm) pause(d time.Duration) {
	select {
	case <-s.stop:
	case <-time.After(d):
	}
}

// Slow reports whether this machine is an emulated one that takes some 50 times
// as long as a real one, as those do that can be interrupted between any two
// instructions. It looks until it has found a machine slow: some become so only
// when the test has begun.
func Slow() bool {
	for range 5 {
		if slow.Load() {
			return true
		}
		x, start := uint64(1), time.Now()
		for range 1_000_000 {
			x = x*6364136223846793005 + 1 // a multiplication waits for the last: 1 ms
		}
		sink.Store(x)
		if time.Since(start) < 20*time.Millisecond {
			return false
		}
	}
	slow.Store(true)
	return true
}

var slow atomic.Bool

var sink atomic.Uint64

// Size returns n, cut 20 times with -short and 50 times more where Slow.
func Size(n int) int {
	if testing.Short() {
		n /= 20
	}
	if Slow() {
		n /= 50
	}
	return max(n, 1)
}

// SelfTest returns why the test binary cannot be started again by itself, nil if
// it can.
var SelfTest = sync.OnceValue(func() error {
	out, err := command("self").Output()
	if err == nil && string(out) != "self" {
		err = fmt.Errorf("it printed %q", out)
	}
	if err != nil {
		return fmt.Errorf("this program cannot start itself: %w", err)
	}
	return nil
})

// role is the environment variable that tells the test binary what it is for.
const role = "QUIESCE_STORM"

func init() {
	switch os.Getenv(role) {
	case "self":
		fmt.Print("self")
		os.Exit(0)
	case "attack":
		attackMain()
		os.Exit(0)
	}
}
