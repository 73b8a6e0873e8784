package posix_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/quiesce-go/quiesce/examples/timers/posix"
	"github.com/quiesce-go/quiesce/internal/patience"
	"github.com/quiesce-go/quiesce/rcu"
)

// hammer has timers of one owner created, looked up and deleted by many goroutines for d, and then for
// as long as it takes to have found some and others gone. The interval of a timer is a number that no
// other has, so that a lookup which gets at another timer, or at what is left of one, sees a number
// that it must not see. The result is the first such error.
func hammer(tab *posix.Table, d time.Duration) error {
	type known struct {
		id       posix.ID
		interval time.Duration
	}
	var (
		slots    [4]atomic.Pointer[known]
		numbers  atomic.Int64
		nfound   atomic.Int64
		ngone    atomic.Int64
		first    atomic.Pointer[error]
		wg       sync.WaitGroup
		threads  []*posix.Thread
		o, other = tab.NewOwner(), tab.NewOwner()
		began    = time.Now()
	)
	enough := func() bool {
		took := time.Since(began)
		return took >= d && nfound.Load() > 0 && ngone.Load() > 0 || took > d+time.Minute
	}
	fail := func(format string, args ...any) {
		err := fmt.Errorf(format, args...)
		first.CompareAndSwap(nil, &err)
	}
	do := func(step func() error) {
		wg.Go(func() {
			defer func() {
				if r := recover(); r != nil {
					fail("panic: %v", r)
				}
			}()
			for first.Load() == nil && !enough() {
				if err := step(); err != nil {
					fail("%w", err)
				}
			}
		})
	}
	replace := func() error {
		id, err := o.Create(posix.Monotonic, nil)
		if err != nil {
			return err
		}
		k := &known{id, time.Duration(numbers.Add(1))}
		if err := o.Settime(id, time.Hour, k.interval); err != nil {
			return err
		}
		if k = slots[rand.N(len(slots))].Swap(k); k != nil {
			return o.Delete(k.id)
		}
		return nil
	}
	get := func(u user) error {
		k := slots[rand.N(len(slots))].Load()
		if k == nil {
			return nil
		}
		if rand.N(100) == 0 {
			runtime.Gosched() // and the timer may be gone
		}
		remaining, interval, err := u.Gettime(k.id)
		switch {
		case err == posix.ErrNotFound:
			ngone.Add(1)
		case err != nil:
			return err
		case interval != k.interval || remaining <= 0 || remaining > time.Hour:
			return fmt.Errorf("timer %d has interval %d, want %d; remaining %v", k.id, interval, k.interval, remaining)
		default:
			nfound.Add(1)
		}
		return nil
	}
	for i := range 4 {
		th := o.NewThread()
		threads = append(threads, th)
		do(replace)
		do(func() error { return get(o) })
		do(func() error { return get(th) })
		do(func() error {
			if k := slots[i].Load(); k != nil {
				if err := other.Delete(k.id); err != posix.ErrNotFound {
					return fmt.Errorf("another owner's Delete: %v", err)
				}
			}
			return nil
		})
	}
	wg.Wait()
	if err := first.Load(); err != nil {
		return *err
	}
	for _, th := range threads { // not after an error: a panic leaves a section open
		th.Close()
	}
	if nfound.Load() == 0 || ngone.Load() == 0 {
		return fmt.Errorf("%d timers were found and %d were gone: nothing was tested", nfound.Load(), ngone.Load())
	}
	return nil
}

// atProcs runs fn with several numbers of CPUs.
func atProcs(t *testing.T, fn func(t *testing.T)) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	for _, n := range slices.Compact([]int{1, 2, 4, max(4, 2*runtime.NumCPU())}) {
		runtime.GOMAXPROCS(n)
		t.Run(fmt.Sprintf("procs=%d", n), fn)
	}
}

func hammerTime() time.Duration {
	if testing.Short() {
		return 50 * time.Millisecond
	}
	return 500 * time.Millisecond
}

// closeAll closes tab and d, and waits until there are no more goroutines than before.
func closeAll(t *testing.T, tab *posix.Table, d *rcu.Domain, goroutines int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	wantErr(t, "Close", tab.Close(ctx), nil)
	wantErr(t, "Close", d.Close(ctx), nil)
	for runtime.NumGoroutine() > goroutines {
		if ctx.Err() != nil {
			t.Fatalf("%d goroutines are left, %d were there before", runtime.NumGoroutine(), goroutines)
		}
		time.Sleep(time.Millisecond) // They have been told, and may not have gone yet.
	}
}

func TestHammerTimers(t *testing.T) {
	for _, name := range []string{"locked", "rcu"} {
		t.Run(name, func(t *testing.T) {
			atProcs(t, func(t *testing.T) {
				goroutines := runtime.NumGoroutine()
				d := rcu.New()
				tab := posix.NewLocked()
				if name == "rcu" {
					tab = posix.New(d)
				}
				if err := hammer(tab, hammerTime()); err != nil {
					t.Error(err)
				}
				closeAll(t, tab, d, goroutines)
			})
		})
	}
}

// A table without the grace period has to fail the hammer. In race builds that is a race as well,
// which fails the test that has it: there, it is another process.
func TestHammerTimers_Broken(t *testing.T) {
	const env = "POSIX_HAMMER_BROKEN"
	if raceEnabled && os.Getenv(env) == "" {
		exe, err := os.Executable()
		if err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command(exe, "-test.run=^"+t.Name()+"$", "-test.timeout=4m")
		cmd.Env = append(os.Environ(), env+"=1")
		out, err := cmd.CombinedOutput()
		if exit := new(exec.ExitError); !errors.As(err, &exit) {
			t.Fatalf("the hammer passed, or did not run: %v\n%s", err, out)
		}
		if s := string(out); !strings.Contains(s, "DATA RACE") && !strings.Contains(s, "what was wrong:") {
			t.Errorf("it failed, but not for the reason that it should:\n%s", s)
		}
		return
	}
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(4))
	began := time.Now()
	// What panics leaves its section open, which the Domain would report.
	d := rcu.New(rcu.WithLogger(slog.New(slog.DiscardHandler)))
	err := hammer(posix.NewBroken(d), patience.Limit)
	if err == nil {
		t.Fatal("the hammer passed")
	}
	if raceEnabled {
		t.Fatalf("what was wrong: %v", err)
	}
	t.Logf("after %v, what was wrong: %v", time.Since(began), err)
}

// Timers that expire are set and deleted at random moments. One that is set to expire once makes one
// callback, and at most one if it is deleted; and after Close there are none.
func TestHammerExpire(t *testing.T) {
	for _, name := range []string{"locked", "rcu"} {
		t.Run(name, func(t *testing.T) {
			atProcs(t, func(t *testing.T) {
				goroutines := runtime.NumGoroutine()
				d := rcu.New()
				tab := posix.NewLocked()
				if name == "rcu" {
					tab = posix.New(d)
				}
				var wg sync.WaitGroup
				var calls, closed atomic.Int64
				ends := time.Now().Add(hammerTime())
				for range 8 {
					wg.Go(func() {
						o := tab.NewOwner()
						defer o.Exit()
						for time.Now().Before(ends) || calls.Load() == 0 {
							expireOnce(t, o, &calls, &closed)
						}
					})
				}
				wg.Wait()
				closeAll(t, tab, d, goroutines)
				closed.Store(1)
			})
		})
	}
}

func expireOnce(t *testing.T, o *posix.Owner, calls, closed *atomic.Int64) {
	var mine atomic.Int64
	done := make(chan struct{})
	id, err := o.Create(posix.Monotonic, func() {
		calls.Add(1)
		if mine.Add(1) != 1 || closed.Load() != 0 {
			t.Error("a callback too many")
		}
		close(done)
	})
	if err != nil {
		t.Error(err)
		return
	}
	within := rand.N(100 * time.Microsecond)
	switch rand.N(3) {
	case 0: // It expires.
		err = o.Settime(id, within+1, 0)
		<-done
		if r, _, err := o.Gettime(id); r != 0 || err != nil {
			t.Errorf("Gettime: %v, %v", r, err)
		}
	case 1: // It expires or not.
		err = o.Settime(id, within+1, 0)
		for began := time.Now(); time.Since(began) < within; {
			runtime.Gosched()
		}
	case 2: // It does not, for it is set again.
		err = errors.Join(o.Settime(id, time.Hour, 1), o.Settime(id, time.Hour, 0))
	}
	if err := errors.Join(err, o.Delete(id)); err != nil {
		t.Error(err)
	}
}

// Tables that are closed while timers are created, set and deleted, and expire, lose none.
func TestHammerClose(t *testing.T) {
	goroutines := runtime.NumGoroutine()
	d := rcu.New()
	rounds := 20
	if testing.Short() {
		rounds = 3
	}
	for range rounds {
		for _, tab := range []*posix.Table{posix.New(d), posix.NewLocked()} {
			var wg sync.WaitGroup
			var closed atomic.Bool
			for range 8 {
				wg.Go(func() {
					o := tab.NewOwner()
					for n := 0; ; n++ {
						id, err := o.Create(posix.Monotonic, func() {
							if closed.Load() {
								t.Error("expired after Close")
							}
						})
						if err != nil {
							wantErr(t, "Create", err, posix.ErrClosed)
							return
						}
						// From here on, Close may have deleted it.
						_ = o.Settime(id, 1, time.Millisecond)
						if n >= 20 || rand.N(2) == 0 { // not so many that nothing else is done
							_ = o.Delete(id)
						}
					}
				})
			}
			for tab.Len() < 10 {
				runtime.Gosched()
			}
			wantErr(t, "Close", tab.Close(t.Context()), nil)
			closed.Store(true)
			wg.Wait()
			if n := tab.Len(); n != 0 {
				t.Errorf("%d timers are left", n)
			}
		}
	}
	closeAll(t, posix.NewLocked(), d, goroutines)
}
