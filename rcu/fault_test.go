package rcu_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quiesce-go/quiesce/asm"
	"github.com/quiesce-go/quiesce/internal/storm"
	"github.com/quiesce-go/quiesce/internal/tier"
	"github.com/quiesce-go/quiesce/rcu"
)

// The faults that systems like this one have had. Each test is named after its row in the list
// of faults that the project keeps, and says in a sentence what the fault was. Where it says twin, there is a
// deliberate fault (see mutant.go) with which TestTwins shows that the test fails.

const blocked = 15 * time.Millisecond // how long something has to last to count as blocked

// soon is how long something may take that must happen. In a twin, where it often does not, it is less.
var soon = func() time.Duration {
	if rcu.Mutant != "" {
		return time.Second
	}
	return 10 * time.Second
}()

var bg = context.Background()

// A section is an open section of either kind.
type section interface{ Unlock() }

// A kind begins sections.
type kind struct {
	name string
	// lock begins a section, each in a Reader of its own.
	lock func(d *rcu.Domain) section
}

var kinds = []kind{
	{"reader", func(d *rcu.Domain) section {
		r := d.NewReader()
		r.Lock()
		return closing{r}
	}},
	{"guard", func(d *rcu.Domain) section { return d.ReadLock() }},
}

// closing closes a Reader with its section.
type closing struct{ *rcu.Reader }

func (c closing) Unlock() {
	c.Reader.Unlock()
	c.Close()
}

// modes are the ways a Domain can treat its readers.
var modes = []struct {
	name string
	opts []rcu.Option
}{
	{"fast", nil},
	{"fenced", []rcu.Option{rcu.WithFences()}},
	{"counted", []rcu.Option{rcu.WithoutWords()}},
}

// each runs f for each kind of section in each mode.
func each(t *testing.T, f func(t *testing.T, k kind, opts ...rcu.Option)) {
	for _, m := range modes {
		for _, k := range kinds {
			if m.name == "counted" && k.name != "guard" {
				continue // as in fast
			}
			t.Run(m.name+"/"+k.name, func(t *testing.T) { f(t, k, m.opts...) })
		}
	}
}

// async runs f in a goroutine and returns what is closed when it has returned.
func async(f func()) <-chan struct{} {
	done := make(chan struct{})
	go func() {
		defer close(done)
		f()
	}()
	return done
}

func mustBlock(t *testing.T, c <-chan struct{}, what string) {
	t.Helper()
	select {
	case <-c:
		t.Fatalf("%s ended and must not", what)
	case <-time.After(blocked):
	}
}

func mustEnd(t *testing.T, c <-chan struct{}, what string) {
	t.Helper()
	select {
	case <-c:
	case <-time.After(soon):
		all := make([]byte, 1<<20)
		t.Fatalf("%s did not end\n%s", what, all[:runtime.Stack(all, true)])
	}
}

func eventually(t *testing.T, what string, f func() bool) {
	t.Helper()
	end := time.Now().Add(soon)
	for tries := 0; !f(); tries++ {
		if tries < 100 {
			runtime.Gosched()
			continue
		}
		if time.Now().After(end) {
			t.Fatalf("not within %v: %s", soon, what)
		}
		time.Sleep(50 * time.Microsecond)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// holds checks that a grace period of d cannot end now.
func holds(t *testing.T, d *rcu.Domain, what string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(bg, blocked)
	defer cancel()
	if err := d.Synchronize(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("%s: Synchronize returned %v", what, err)
	}
}

// panics returns what f panics with, as a string, or "" if it does not.
func panics(f func()) (msg string) {
	defer func() {
		if e := recover(); e != nil {
			msg = fmt.Sprint(e)
		}
	}()
	f()
	return ""
}

// Whoever arrived during a grace period joined it, though readers had come since it began.
// Twin: join.
func TestFault_R1(t *testing.T) {
	each(t, func(t *testing.T, k kind, opts ...rcu.Option) {
		d := rcu.New(opts...)
		r0 := k.lock(d)
		first := async(func() { d.Synchronize(bg) })
		eventually(t, "first grace period in progress", d.InProgress)
		r1 := k.lock(d)
		var ran, headRan atomic.Bool
		var h rcu.Head
		cookie, poll := d.Cookie(), d.StartPoll()
		d.Call(func() { ran.Store(true) })
		d.CallHead(&h, func(*rcu.Head) { headRan.Store(true) })
		second := async(func() { d.Synchronize(bg) })
		expedited := async(func() { d.SynchronizeExpedited(bg) })
		waiting := async(func() { d.Wait(bg, cookie) })
		mustBlock(t, first, "the first Synchronize")
		r0.Unlock()
		mustEnd(t, first, "the first Synchronize")
		mustBlock(t, second, "the second Synchronize")
		mustBlock(t, expedited, "SynchronizeExpedited")
		mustBlock(t, waiting, "Wait")
		if d.Poll(poll) || d.Poll(cookie) || ran.Load() || headRan.Load() {
			t.Fatalf("Poll %v %v, callbacks ran %v %v, though a reader came before them", d.Poll(poll), d.Poll(cookie), ran.Load(), headRan.Load())
		}
		r1.Unlock()
		mustEnd(t, second, "the second Synchronize")
		mustEnd(t, expedited, "SynchronizeExpedited")
		mustEnd(t, waiting, "Wait")
		eventually(t, "Poll and callbacks", func() bool {
			return d.Poll(poll) && d.Poll(cookie) && ran.Load() && headRan.Load()
		})
	})
}

// A reader was stopped between loading the epoch and publishing it, and published one from long
// ago. Twin: onephase.
func TestFault_R2(t *testing.T) {
	for _, fences := range []bool{false, true} {
		for _, k := range kinds {
			for _, periods := range []int{0, 1, 2, 3, 5, 1000} {
				t.Run(fmt.Sprintf("fences=%v/%s/%d", fences, k.name, periods), func(t *testing.T) {
					staleReader(t, k, periods, fences)
				})
			}
		}
	}
}

func staleReader(t *testing.T, k kind, periods int, fences bool) {
	var park atomic.Bool
	parked, release := make(chan struct{}), make(chan struct{})
	opts := []rcu.Option{rcu.WithHook(rcu.HookLoaded, func() {
		if park.Swap(false) {
			close(parked)
			<-release
		}
	})}
	if fences {
		opts = append(opts, rcu.WithFences())
	}
	d := rcu.New(opts...)

	type object struct{ poisoned atomic.Bool }
	var p rcu.Pointer[object]
	p.Store(new(object))
	has, leave := make(chan struct{}), make(chan struct{})
	park.Store(true)
	reader := async(func() {
		s := k.lock(d)
		defer s.Unlock()
		o := p.Load()
		close(has)
		<-leave
		if o.poisoned.Load() {
			t.Error("a reader saw what a callback had freed")
		}
	})
	mustEnd(t, parked, "the reader's way to the hook")
	for range periods {
		// A section makes the phases change places.
		g := d.ReadLock()
		phase := d.CurrentPhase()
		done := async(func() { d.Synchronize(bg) })
		eventually(t, "the phase changed", func() bool { return d.CurrentPhase() != phase })
		g.Unlock()
		mustEnd(t, done, "a grace period beside a reader that has not published itself")
	}
	close(release)
	<-has
	o := p.Swap(new(object))
	d.Call(func() { o.poisoned.Store(true) })
	holds(t, d, "beside a reader with an old number")
	close(leave)
	mustEnd(t, reader, "the reader")
	must(t, d.Barrier(bg))
	if !o.poisoned.Load() {
		t.Error("the callback did not run")
	}
}

// The reader's announcement is a store that sits in its processor's store buffer while its loads go
// ahead. Twin: nofence.
func TestFault_R3(t *testing.T) {
	if runtime.GOMAXPROCS(0) < 2 || runtime.NumCPU() < 2 {
		t.Skip("needs two processors at the same time")
	}
	long := time.Second
	if testing.Short() {
		long = 200 * time.Millisecond
	}
	if rcu.Mutant != "" { // until it is found, which takes long if the two threads seldom run at once
		long = 60 * time.Second
	}
	top := t
	each(t, func(t *testing.T, k kind, opts ...rcu.Option) {
		if rcu.Mutant != "" && top.Failed() {
			return // It was found, the rest need not take its time.
		}
		storeBuffer(t, k.name == "reader", long, opts...)
	})
}

// storeBuffer runs the store buffering litmus test again and again: the reader announces itself and reads
// x, the updater changes x and looks for readers. While the reader is in the section in which it read x,
// that value must not die.
func storeBuffer(t *testing.T, reader bool, long time.Duration, opts ...rcu.Option) {
	d := rcu.New(opts...)
	var v struct { // each word in lines of its own
		_    [128]byte
		x    atomic.Int64
		_    [128]byte
		dead atomic.Int64 // this value of x and all before it
		_    [128]byte
		stop atomic.Bool
		_    [128]byte
		// Lines that the updater takes away from the reader, or that its cache cannot hold at once: the reader's
		// announcement has to wait in the store buffer until its stores to them are through.
		slow [48]struct {
			reader, updater int
			_               [4080]byte
		}
	}
	v.x.Store(1)
	sections, bad := 0, 0
	done := async(func() {
		defer v.stop.Store(true)
		look := func() {
			x := v.x.Load()
			for range 64 {
				if v.dead.Load() >= x {
					bad++
					break
				}
			}
		}
		r := d.NewReader()
		for ; !v.stop.Load() && bad == 0; sections++ {
			for i := range v.slow {
				v.slow[i].reader = sections
			}
			if reader {
				r.Lock()
				look()
				r.Unlock()
			} else {
				g := d.ReadLock()
				look()
				g.Unlock()
			}
		}
	})
	periods := 0
	for end := time.Now().Add(long); !v.stop.Load() && time.Now().Before(end); periods++ {
		for i := range v.slow {
			v.slow[i].updater = periods
		}
		x := v.x.Add(1)
		must(t, d.Synchronize(bg))
		v.dead.Store(x - 1)
	}
	v.stop.Store(true)
	<-done
	if bad > 0 {
		t.Errorf("what a reader had found died in its section, after %d sections and %d grace periods", sections, periods)
	} else {
		t.Logf("%d sections, %d grace periods", sections, periods)
	}
}

// A nested section made the outer one look younger. Twin: nestrefresh.
func TestFault_R4(t *testing.T) {
	for _, m := range modes {
		t.Run(m.name+"/reader", func(t *testing.T) {
			d := rcu.New(m.opts...)
			r := d.NewReader()
			r.Lock()
			done := async(func() { d.Synchronize(bg) })
			eventually(t, "grace period in progress", d.InProgress)
			for range 3 {
				r.Lock()
				r.Lock()
				r.Refresh() // The outer section goes on.
				r.Unlock()
				r.Unlock()
			}
			mustBlock(t, done, "a grace period beside a nested section")
			r.Unlock()
			mustEnd(t, done, "Synchronize")
		})
		t.Run(m.name+"/guard", func(t *testing.T) {
			d := rcu.New(m.opts...)
			g0 := d.ReadLock()
			done := async(func() { d.Synchronize(bg) })
			eventually(t, "grace period in progress", d.InProgress)
			for range 3 {
				d.ReadLock().Unlock()
			}
			mustBlock(t, done, "a grace period beside a nested section")
			g0.Unlock()
			mustEnd(t, done, "Synchronize")
		})
		t.Run(m.name+"/overlap", func(t *testing.T) {
			d := rcu.New(m.opts...)
			g0, g1 := d.ReadLock(), d.ReadLock()
			r := d.NewReader()
			r.Lock()
			done := async(func() { d.Synchronize(bg) })
			eventually(t, "grace period in progress", d.InProgress)
			g0.Unlock()
			mustBlock(t, done, "Synchronize, beside a Guard and a Reader")
			r.Lock()
			r.Unlock()
			g1.Unlock()
			mustBlock(t, done, "Synchronize, beside a Reader")
			r.Unlock()
			mustEnd(t, done, "Synchronize")
		})
	}
}

// The scan missed a slot. Twin: skipslot.
func TestFault_R5(t *testing.T) {
	for _, procs := range []int{1, 2, 8} {
		t.Run(fmt.Sprint("procs=", procs), func(t *testing.T) {
			defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(procs))
			for _, m := range modes {
				t.Run(m.name, func(t *testing.T) { slots(t, m.opts...) })
			}
		})
	}
}

func slots(t *testing.T, opts ...rcu.Option) {
	must(t, rcu.New(opts...).Synchronize(bg)) // never used
	const n = 4
	d := rcu.New(opts...)
	var rs [n]*rcu.Reader
	for i := range rs {
		rs[i] = d.NewReader()
	}
	for i, r := range rs {
		r.Lock()
		holds(t, d, fmt.Sprintf("Reader %d alone", i))
		r.Unlock()
		must(t, d.Synchronize(bg))
	}
	var gs [asm.ClaimWords * 2]rcu.Guard
	for i := range gs {
		for j := range gs {
			gs[j] = d.ReadLock()
		}
		for j := range gs {
			if i != j {
				gs[j].Unlock()
			}
		}
		holds(t, d, fmt.Sprintf("Guard %d of %d alone", i, len(gs)))
		gs[i].Unlock()
		must(t, d.Synchronize(bg))
	}

	d = rcu.New(append(opts, rcu.WithoutWords())...)
	for _, tr := range []tier.Tier{tier.RSEQ, tier.Pinned, tier.Shared} {
		now, undo := tier.Switch(tr)
		for range 2 {
			phase := d.CurrentPhase()
			g := d.ReadLock()
			// On a busy machine a wait may end before it has looked even once.
			for tries := 0; d.CurrentPhase() == phase; tries++ {
				if tries == 20 {
					t.Fatal("the phases did not change places")
				}
				holds(t, d, fmt.Sprintf("a Guard of phase %d alone in tier %v", phase, now))
			}
			g2 := d.ReadLock()
			holds(t, d, "two Guards of different phases")
			g.Unlock()
			holds(t, d, fmt.Sprintf("a Guard of phase %d alone in tier %v", 1-phase, now))
			g2.Unlock()
			must(t, d.Synchronize(bg))
			// Next time begin in the other phase.
			if d.CurrentPhase() == phase {
				g := d.ReadLock()
				holds(t, d, "a Guard")
				g.Unlock()
				must(t, d.Synchronize(bg))
			}
		}
		undo()
	}
}

// Retiring in a section took a lock that a waiting synchronize held, and callbacks ran under a lock.
// Twin: lockedcall.
func TestFault_R6(t *testing.T) {
	each(t, func(t *testing.T, k kind, opts ...rcu.Option) {
		d, other := rcu.New(opts...), rcu.New()
		r := k.lock(d)
		sync := async(func() { d.Synchronize(bg) })
		eventually(t, "grace period in progress", d.InProgress)
		n := 100000
		if testing.Short() || rcu.RaceEnabled {
			n = 10000
		}
		var ran atomic.Int64
		queued := async(func() {
			for range n {
				d.Call(func() { ran.Add(1) })
			}
		})
		mustEnd(t, queued, "Call in a section beside a waiting Synchronize")
		mustBlock(t, sync, "Synchronize")
		if ran.Load() != 0 {
			t.Fatal("callbacks ran in spite of a section")
		}
		d.Call(func() {
			d.Call(func() { ran.Add(1) })
			d.Poll(d.Cookie())
			d.Poll(d.StartPoll())
			s := k.lock(d)
			d.Call(func() { ran.Add(1) })
			s.Unlock()
			if err := other.Synchronize(bg); err != nil {
				t.Error(err)
			}
			ran.Add(1)
		})
		r.Unlock()
		mustEnd(t, sync, "Synchronize")
		must(t, d.Close(bg))
		if got := ran.Load(); got != int64(n)+3 {
			t.Errorf("%d of %d callbacks ran", got, n+3)
		}
	})
}

// The barrier was a grace period, and did not wait for callbacks. Twin: gpbarrier.
func TestFault_R7(t *testing.T) {
	each(t, func(t *testing.T, k kind, opts ...rcu.Option) {
		d := rcu.New(opts...)
		var ran atomic.Int64
		var wg sync.WaitGroup
		for range 10 {
			wg.Go(func() {
				d.Call(func() {
					time.Sleep(5 * time.Millisecond)
					ran.Add(1)
				})
			})
		}
		wg.Wait()
		must(t, d.Barrier(bg))
		if ran.Load() != 10 {
			t.Errorf("%d of 10 callbacks had run when Barrier returned", ran.Load())
		}
		r := k.lock(d)
		mustEnd(t, async(func() { d.Barrier(bg) }), "Barrier with nothing queued and a section open")
		sync := async(func() { d.Synchronize(bg) })
		eventually(t, "grace period in progress", d.InProgress)
		mustEnd(t, async(func() { d.Barrier(bg) }), "Barrier with nothing queued and a grace period in progress")
		d.Call(func() { ran.Add(1) })
		barrier := async(func() { d.Barrier(bg) })
		mustBlock(t, barrier, "Barrier with a callback that waits for a section")
		ctx, cancel := context.WithTimeout(bg, blocked)
		defer cancel()
		if err := d.Barrier(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Barrier with a deadline returned %v", err)
		}
		r.Unlock()
		mustEnd(t, sync, "Synchronize")
		mustEnd(t, barrier, "Barrier")
		if ran.Load() != 11 {
			t.Error("the callback had not run when Barrier returned")
		}
	})
}

// A barrier's marker was put on a worker that was shutting down. Twin: lostwish.
func TestFault_R8(t *testing.T) {
	rounds := 2000
	if testing.Short() || rcu.RaceEnabled {
		rounds = 200
	}
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	pause := func() {
		switch rand.IntN(4) {
		case 0:
			runtime.Gosched()
		case 1:
			time.Sleep(time.Microsecond)
		}
	}
	for round := range rounds {
		d := rcu.New(rcu.WithHook(rcu.HookDrained, pause), rcu.WithHook(rcu.HookQueued, pause), rcu.WithHook(rcu.HookBarrier, pause))
		var queued, ran atomic.Int64
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				for range 3 {
					var mine atomic.Bool
					if d.TryCall(func() { ran.Add(1); mine.Store(true) }) != nil {
						return
					}
					queued.Add(1)
					if err := d.Barrier(bg); err != nil && !errors.Is(err, rcu.ErrClosed) {
						t.Error(err)
					}
					if !mine.Load() {
						t.Error("Barrier returned before the callback had run")
					}
				}
			})
		}
		wg.Go(func() {
			if round%2 == 0 {
				pause()
				must(t, d.Close(bg))
			} else {
				runtime.GOMAXPROCS(1 + rand.IntN(4))
			}
		})
		mustEnd(t, async(wg.Wait), "Call, Barrier or Close")
		if queued.Load() != ran.Load() {
			t.Fatalf("round %d: %d callbacks queued, %d run", round, queued.Load(), ran.Load())
		}
	}
}

// Registering a reader needed the lock that a waiting synchronize held. Twin: lockedregister.
func TestFault_R9(t *testing.T) {
	each(t, func(t *testing.T, k kind, opts ...rcu.Option) {
		d := rcu.New(opts...)
		s := k.lock(d)
		defer s.Unlock()
		done := async(func() { d.Synchronize(bg) })
		eventually(t, "grace period in progress", d.InProgress)
		late := async(func() {
			r := d.NewReader()
			r.Lock()
			r.Unlock()
			r.Close()
			d.ReadLock().Unlock()
		})
		select {
		case <-late:
		case <-time.After(soon):
			t.Fatal("a new Reader waits for a grace period")
		}
		mustBlock(t, done, "Synchronize")
	})
}

// Waiting where it can only deadlock. In callbacks that is reported; in sections the context ends it. Twin:
// nodeadlock.
func TestFault_R10(t *testing.T) {
	each(t, func(t *testing.T, k kind, opts ...rcu.Option) {
		d := rcu.New(opts...)
		c := d.Cookie()
		waits := map[string]func(context.Context) error{
			"Synchronize":          d.Synchronize,
			"SynchronizeExpedited": d.SynchronizeExpedited,
			"Barrier":              d.Barrier,
			"Close":                d.Close,
			"Wait":                 func(ctx context.Context) error { return d.Wait(ctx, c) },
		}
		d.Call(func() {
			ctx, cancel := context.WithTimeout(bg, soon/2)
			defer cancel()
			for name, f := range waits {
				if err := f(ctx); !errors.Is(err, rcu.ErrDeadlock) {
					t.Errorf("%s in a callback returned %v", name, err)
				}
			}
		})
		must(t, d.Barrier(bg))

		s := k.lock(d)
		c = d.Cookie()
		d.Call(func() {})
		for name, f := range waits {
			ctx, cancel := context.WithTimeout(bg, blocked/3)
			if err := f(ctx); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%s in a section returned %v", name, err)
			}
			cancel()
		}
		// The attempts have lost nothing.
		s.Unlock()
		must(t, d.Synchronize(bg))
		must(t, d.Close(bg))
		for name, f := range waits {
			if err := f(bg); !errors.Is(err, rcu.ErrClosed) {
				t.Errorf("%s of a closed Domain returned %v", name, err)
			}
		}
	})
}

// Shutdown with chained and endless callbacks. Twin: lostwish. For floods see TestFault_R11_Flood.
func TestFault_R11(t *testing.T) {
	t.Run("chain", func(t *testing.T) {
		d := rcu.New()
		var ran int
		var f func()
		f = func() {
			if ran++; ran < 5 {
				d.Call(f)
			}
		}
		d.Call(f)
		must(t, d.Close(bg))
		if ran != 5 {
			t.Errorf("Close returned after %d of 5 callbacks", ran)
		}
	})
	t.Run("endless", func(t *testing.T) {
		d := rcu.New()
		var stop atomic.Bool
		var f func()
		f = func() {
			if !stop.Load() {
				d.Call(f)
			}
		}
		d.Call(f)
		ctx, cancel := context.WithTimeout(bg, blocked)
		defer cancel()
		err := d.Close(ctx)
		if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "pending") {
			t.Fatalf("Close beside an endless callback returned %v", err)
		}
		must(t, d.Synchronize(bg)) // It is open again.
		stop.Store(true)
		must(t, d.Close(bg))
		if err := d.TryCall(func() {}); !errors.Is(err, rcu.ErrClosed) {
			t.Errorf("TryCall of a closed Domain returned %v", err)
		}
	})
	t.Run("pending", func(t *testing.T) {
		d := rcu.New()
		g := d.ReadLock()
		for range 7 {
			d.Call(func() {})
		}
		ctx, cancel := context.WithTimeout(bg, blocked)
		defer cancel()
		if err := d.Close(ctx); err == nil || !strings.Contains(err.Error(), "7 callbacks pending") {
			t.Errorf("Close with 7 callbacks pending returned %v", err)
		}
		g.Unlock()
		must(t, d.Close(bg))
	})
}

// A callback that retires more spoilt the batch that was being run. Twin: lostbatch.
func TestFault_R12(t *testing.T) {
	d := rcu.New()
	n := 20000
	if testing.Short() || rcu.RaceEnabled {
		n = 2000
	}
	var queued, ran atomic.Int64
	var spawn func(depth int)
	spawn = func(depth int) {
		queued.Add(1)
		var once atomic.Bool
		d.Call(func() {
			if once.Swap(true) {
				t.Error("a callback ran twice")
			}
			ran.Add(1)
			if depth < 20 {
				for range rand.IntN(3) {
					if queued.Load() < int64(n) {
						spawn(depth + 1)
					}
				}
			}
			if rand.IntN(100) == 0 {
				runtime.Goexit()
			}
		})
	}
	for range n / 4 {
		spawn(0)
	}
	must(t, d.Close(bg))
	if queued.Load() != ran.Load() {
		t.Errorf("%d callbacks queued, %d run", queued.Load(), ran.Load())
	}
}

// A panic in a callback ends the program, as in any goroutine, with its own message.
func TestFault_R12_Panic(t *testing.T) {
	if os.Getenv("RCU_PANIC_CHILD") != "" {
		d := rcu.New()
		d.Call(func() { panic("thrown by a callback") })
		d.Barrier(bg)
		time.Sleep(soon)
		return
	}
	if err := storm.SelfTest(); err != nil {
		t.Skip(err)
	}
	cmd := exec.Command(os.Args[0], "-test.run=^TestFault_R12_Panic$")
	cmd.Env = append(os.Environ(), "RCU_PANIC_CHILD=1")
	out, err := cmd.CombinedOutput()
	if err == nil || !strings.Contains(string(out), "panic: thrown by a callback") {
		t.Errorf("a panic in a callback: %v\n%s", err, out)
	}
}

// A count ran into the bits beside it. Twin: narrow.
func TestFault_R13(t *testing.T) {
	n := 1000000
	if testing.Short() {
		n = 1<<16 + 1
	}
	for _, preset := range []int64{0, 1<<32 - 2, 1<<63 - 2, -2} {
		t.Run(fmt.Sprint("counts from ", preset), func(t *testing.T) {
			d := rcu.New(rcu.WithoutWords())
			d.ReadLock().Unlock()
			d.Preset(preset)
			must(t, d.Synchronize(bg))
			open := make([]rcu.Guard, n)
			for i := range open {
				open[i] = d.ReadLock()
			}
			for _, g := range open[1:] {
				g.Unlock()
			}
			holds(t, d, "the last Guard of many")
			open[0].Unlock()
			must(t, d.Synchronize(bg))
			open[0].Unlock()
			if msg := panics(func() { d.Synchronize(bg) }); !strings.Contains(msg, "unlocked already") {
				t.Errorf("after a second Unlock Synchronize panicked with %q", msg)
			}
		})
	}
	for _, number := range []uint64{1<<32 - 2, 1<<32 - 1, 1<<63 - 1} {
		t.Run(fmt.Sprint("number from ", number), func(t *testing.T) {
			d := rcu.New(rcu.WithNumber(number))
			r := d.NewReader()
			var cookies []rcu.Cookie
			for range 5 {
				c := d.Cookie()
				if d.Poll(c) {
					t.Error("a new Cookie's grace period has ended")
				}
				cookies = append(cookies, c)
				r.Lock()
				holds(t, d, "a Reader")
				r.Unlock()
				must(t, d.Synchronize(bg))
				for _, c := range cookies {
					if !d.Poll(c) {
						t.Error("an old Cookie's grace period has not ended")
					}
				}
			}
		})
	}
	t.Run("nesting", func(t *testing.T) {
		d := rcu.New()
		r := d.NewReader()
		for range n {
			r.Lock()
		}
		for range n - 1 {
			r.Unlock()
		}
		holds(t, d, "a deeply nested section")
		r.Unlock()
		must(t, d.Synchronize(bg))
	})
}

// The reader's goroutine ended in the section. Twin: noreclaim.
func TestFault_R14(t *testing.T) {
	var log safeBuilder
	d := rcu.New(rcu.WithLogger(slog.New(slog.NewTextHandler(&log, nil))))
	if msg := panics(func() { d.Read(func() { panic("in a section") }) }); msg != "in a section" {
		t.Errorf("Read panicked with %q", msg)
	}
	must(t, d.Synchronize(bg))
	mustEnd(t, async(func() { d.Read(runtime.Goexit) }), "a goroutine that calls Goexit in Read")
	must(t, d.Synchronize(bg))

	mustEnd(t, async(func() { dropReader(d) }), "a goroutine that drops a Reader")
	if log.String() != "" {
		t.Errorf("logged: %s", log.String())
	}
	done := async(func() { d.Synchronize(bg) })
	rcu.Collect()
	mustEnd(t, done, "Synchronize after a Reader was dropped in a section")
	for _, want := range []string{"dropped", "dropReader"} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("no %q in the log: %s", want, log.String())
		}
	}
	if n := d.Stats().Readers; n != 0 {
		t.Errorf("%d Readers are left", n)
	}
}

//go:noinline
func dropReader(d *rcu.Domain) {
	d.NewReader().Lock()
	runtime.Goexit()
}

// safeBuilder is a strings.Builder for several goroutines.
type safeBuilder struct {
	mu sync.Mutex
	b  strings.Builder
}

func (s *safeBuilder) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *safeBuilder) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

// The worker outlived the test. Twin: immortal.
func TestFault_R15(t *testing.T) {
	for name, opts := range map[string][]rcu.Option{
		"plain":  nil,
		"fenced": {rcu.WithFences()},
		"lazy":   {rcu.WithLazy(time.Millisecond)},
		"debug":  {rcu.WithDebug(), rcu.WithMaxPending(1), rcu.WithStallTimeout(time.Millisecond), rcu.WithStallHandler(func(rcu.Stall) {})},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { bubble(t, opts...) })
		})
	}
	// The default Domain in a bubble, and outside before and after.
	for range 2 {
		must(t, rcu.Default().Synchronize(bg))
		rcu.Default().Call(func() {})
		must(t, rcu.Default().Barrier(bg))
		eventually(t, "no worker", func() bool { return !rcu.Default().HasWorker() })
		synctest.Test(t, func(t *testing.T) {
			rcu.Default().Call(func() {})
			must(t, rcu.Default().Barrier(bg))
			must(t, rcu.Default().Synchronize(bg))
		})
	}
}

func bubble(t *testing.T, opts ...rcu.Option) {
	d := rcu.New(opts...)
	for range 3 {
		ran := 0
		r := d.NewReader()
		r.Lock()
		locked, unlock := make(chan rcu.Guard), make(chan bool)
		go func() { // another goroutine, or a Domain with WithDebug would object
			locked <- d.ReadLock()
			<-unlock
		}()
		g := <-locked
		r.Unlock()
		d.Call(func() { ran++ })
		c := d.StartPoll()
		go func() {
			time.Sleep(time.Second)
			g.Unlock()
		}()
		must(t, d.Synchronize(bg))
		must(t, d.Barrier(bg))
		if ran != 1 {
			t.Error("Barrier returned before the callback had run")
		}
		must(t, d.Wait(bg, c))
		close(unlock)
		r.Close()
		time.Sleep(5 * time.Second)
		if d.HasWorker() {
			t.Error("an idle Domain has a worker")
		}
		if s := goroutines(); s != "" {
			t.Errorf("an idle Domain has goroutines:\n%s", s)
		}
	}
	ctx, cancel := context.WithTimeout(bg, time.Minute)
	defer cancel()
	must(t, d.Close(ctx))
	if s := goroutines(); s != "" {
		t.Errorf("a closed Domain has goroutines:\n%s", s)
	}
}

// goroutines returns the stacks of those goroutines of Domains that are in the caller's bubble.
func goroutines() (list string) {
	synctest.Wait()
	all := make([]byte, 1<<20)
	all = all[:runtime.Stack(all, true)]
	stacks := strings.Split(string(all), "\n\n")
	_, bubble, _ := strings.Cut(strings.SplitN(stacks[0], "\n", 2)[0], "synctest bubble")
	for _, s := range stacks[1:] {
		if strings.Contains(strings.SplitN(s, "\n", 2)[0], "synctest bubble"+bubble) && strings.Contains(s, "rcu.(*Domain)") {
			list += s + "\n\n"
		}
	}
	return list
}

// An edge was missing through Synchronize, Poll, Barrier or a callback. This test says something under
// the race detector. Twin: noedge.
func TestFault_R16(t *testing.T) {
	ways := map[string]func(d *rcu.Domain, free func()){
		"Synchronize": func(d *rcu.Domain, free func()) { d.Synchronize(bg); free() },
		"Expedited":   func(d *rcu.Domain, free func()) { d.SynchronizeExpedited(bg); free() },
		"Wait":        func(d *rcu.Domain, free func()) { d.Wait(bg, d.Cookie()); free() },
		"Call":        func(d *rcu.Domain, free func()) { d.Call(free) },
		"CallHead":    func(d *rcu.Domain, free func()) { d.CallHead(new(rcu.Head), func(*rcu.Head) { free() }) },
		"Go":          func(d *rcu.Domain, free func()) { d.Go(free) },
		"Retire":      func(d *rcu.Domain, free func()) { rcu.Retire(d, 0, func(int) { free() }) },
		"Poll": func(d *rcu.Domain, free func()) {
			for c := d.StartPoll(); !d.Poll(c); {
				runtime.Gosched()
			}
			free()
		},
		"Barrier": func(d *rcu.Domain, free func()) { d.Call(func() {}); d.Barrier(bg); free() },
	}
	each(t, func(t *testing.T, k kind, opts ...rcu.Option) {
		for name, way := range ways {
			t.Run(name, func(t *testing.T) {
				d := rcu.New(opts...)
				type object struct{ n int }
				var p rcu.Pointer[object]
				o := &object{}
				p.Store(o)
				in, end := make(chan struct{}), make(chan struct{})
				go func() {
					s := k.lock(d)
					close(in)
					for p.Load() != nil {
						runtime.Gosched()
					}
					o.n++ // plain
					s.Unlock()
				}()
				<-in
				p.Store(nil)
				way(d, func() {
					o.n++ // plain
					close(end)
				})
				<-end
				if o.n != 2 {
					t.Errorf("%d of 2 increments", o.n)
				}
			})
		}
	})
}

// One head was queued twice. Twin: requeue.
func TestFault_R17(t *testing.T) {
	d := rcu.New()
	g := d.ReadLock()
	var before, h, after rcu.Head
	var ran, other atomic.Int64
	count := func(*rcu.Head) { ran.Add(1) }
	d.CallHead(&before, func(*rcu.Head) { other.Add(1) })
	var caught atomic.Int64
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() {
			if strings.Contains(panics(func() { d.CallHead(&h, count) }), "queued already") {
				caught.Add(1)
			}
		})
	}
	wg.Wait()
	d.CallHead(&after, func(*rcu.Head) { other.Add(1) })
	g.Unlock()
	must(t, d.Barrier(bg))
	if caught.Load() != 1 || ran.Load() != 1 || other.Load() != 2 {
		t.Errorf("%d panics, the callback ran %d times, its neighbours %d", caught.Load(), ran.Load(), other.Load())
	}
	n := 0
	var again func(h *rcu.Head)
	again = func(h *rcu.Head) {
		if n++; n < 3 {
			d.CallHead(h, again)
		}
	}
	d.CallHead(&h, again)
	must(t, d.Close(bg))
	if n != 3 {
		t.Errorf("a callback that queues itself ran %d of 3 times", n)
	}
}
