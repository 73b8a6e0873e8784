package ns_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quiesce-go/quiesce/examples/namespace/ns"
	"github.com/quiesce-go/quiesce/internal/patience"
	"github.com/quiesce-go/quiesce/rcu"
)

// A ledger counts what there is of mounts and objects, and what is wrong with it.
type ledger struct {
	mounted, unmounted, added, freed atomic.Int64

	mu    sync.Mutex
	wrong map[string]int
}

func (l *ledger) fault(format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.wrong == nil {
		l.wrong = map[string]int{}
	}
	l.wrong[fmt.Sprintf(format, args...)]++
}

// check returns what is wrong after a Barrier, when there is to be nothing left.
func (l *ledger) check() map[string]int {
	if m, u := l.mounted.Load(), l.unmounted.Load(); m != u {
		l.fault("%d mounts of %d are left", m-u, m)
	}
	if a, f := l.added.Load(), l.freed.Load(); a != f {
		l.fault("%d objects of %d are left", a-f, a)
	}
	return l.wrong
}

// A mount knows how many times it was unmounted, and who is using it.
type mount struct {
	*ledger
	id      ns.ID
	members atomic.Int64
	gone    atomic.Int64
}

func (l *ledger) mount(id ns.ID) (ns.Mount, error) {
	l.mounted.Add(1)
	return &mount{ledger: l, id: id}, nil
}

func (m *mount) Unmount() {
	m.unmounted.Add(1)
	if n := m.gone.Add(1); n != 1 {
		m.fault("unmounted twice")
	}
	if n := m.members.Load(); n != 0 {
		m.fault("unmounted with tasks inside")
	}
}

func (m *mount) use(who string) {
	if m.gone.Load() != 0 {
		m.fault("unmounted under a %s", who)
	}
}

func (l *ledger) add(k *ns.Task) (int, error) {
	l.added.Add(1)
	return k.Add(new(atomic.Int64), func(o any) {
		l.freed.Add(1)
		if o.(*atomic.Int64).Add(1) != 1 {
			l.fault("an object was released twice")
		}
	})
}

// eachStrategy runs fn in a bubble, for a Table of each strategy and a ledger of its mounts. After fn,
// nothing may be left: no namespace, no mount, no object, no goroutine.
func eachStrategy(t *testing.T, fn func(t *testing.T, tab *ns.Table, d *rcu.Domain, s ns.Strategy, l *ledger)) {
	for _, s := range ns.Strategies {
		t.Run(s.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var l ledger
				d := rcu.New()
				tab := ns.New(d, s, l.mount)
				fn(t, tab, d, s, &l)
				must(t, tab.Barrier(context.Background()))
				must(t, d.Close(context.Background()))
				if n := tab.Len(); n != 0 {
					t.Errorf("%d namespaces are left", n)
				}
				for what := range l.check() {
					t.Error(what)
				}
			})
		})
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func want(t *testing.T, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("error %v, want %v", err, want)
	}
}

func TestTable(t *testing.T) {
	ctx := context.Background()
	eachStrategy(t, func(t *testing.T, tab *ns.Table, _ *rcu.Domain, _ ns.Strategy, l *ledger) {
		a, b := tab.NewTask(), tab.NewTask()
		id, err := a.Create()
		must(t, err)
		must(t, b.Enter(id))
		if a.ID() != id || b.ID() != id || tab.Len() != 1 {
			t.Errorf("tasks in %d and %d of %d, want %d", a.ID(), b.ID(), tab.Len(), id)
		}
		o, err := l.add(a)
		must(t, err)
		_, err = l.add(a)
		must(t, err)
		if v, err := b.Object(o); err != nil || v.(*atomic.Int64).Load() != 0 {
			t.Errorf("Object: %v, %v", v, err)
		}
		must(t, b.Remove(o))
		_, err = a.Object(o)
		want(t, err, ns.ErrNotFound)
		want(t, a.Remove(o), ns.ErrNotFound)

		must(t, a.Leave(ctx))
		must(t, tab.Barrier(ctx))
		if l.unmounted.Load() != 0 || l.freed.Load() != 1 {
			t.Error("torn down before the last task has left")
		}
		must(t, tab.Walk(id, func(m ns.Mount) { m.(*mount).use("walk") }))
		m, err := b.Mount()
		must(t, err)
		must(t, b.Exit(ctx))
		must(t, b.Exit(ctx)) // is in no namespace
		want(t, tab.Walk(id, func(ns.Mount) { t.Error("walks where nobody is") }), ns.ErrNotFound)
		want(t, a.Enter(id), ns.ErrNotFound)
		must(t, tab.Barrier(ctx))
		if m.(*mount).gone.Load() != 1 || l.freed.Load() != 2 {
			t.Errorf("unmounted %d times, %d objects of 2 released", m.(*mount).gone.Load(), l.freed.Load())
		}
		again, err := a.Create()
		must(t, err)
		if again != id {
			t.Errorf("the next namespace is %d, and %d is free", again, id)
		}
		must(t, a.Exit(ctx))
	})
}

func TestTask_Misuse(t *testing.T) {
	ctx := context.Background()
	eachStrategy(t, func(t *testing.T, tab *ns.Table, _ *rcu.Domain, _ ns.Strategy, l *ledger) {
		k := tab.NewTask()
		_, err := k.Add(1, nil)
		want(t, err, ns.ErrOutside)
		_, err = k.Object(0)
		want(t, err, ns.ErrOutside)
		_, err = k.Mount()
		want(t, err, ns.ErrOutside)
		want(t, k.Remove(0), ns.ErrOutside)
		want(t, k.Leave(ctx), ns.ErrOutside)
		for _, id := range []ns.ID{-1, 0, 1, math.MaxInt} {
			want(t, k.Enter(id), ns.ErrNotFound)
			want(t, tab.Walk(id, nil), ns.ErrNotFound)
		}
		id, err := k.Create()
		must(t, err)
		_, err = k.Create()
		want(t, err, ns.ErrMember)
		want(t, k.Enter(id), ns.ErrMember)
		_, err = k.Add("without a function that frees it", nil)
		must(t, err)
		must(t, k.Leave(ctx))
	})
	for _, bad := range []func(){
		func() { ns.New(rcu.Default(), 3, new(ledger).mount) },
		func() { ns.New(rcu.Default(), -1, new(ledger).mount) },
		func() { ns.New(rcu.Default(), ns.Shared, nil) },
	} {
		func() {
			defer func() {
				if msg, _ := recover().(string); !strings.HasPrefix(msg, "ns: New needs a strategy and a function that mounts") {
					t.Errorf("New panics with %q", msg)
				}
			}()
			bad()
		}()
	}
}

func TestTask_Create_CannotMount(t *testing.T) {
	full := errors.New("no space left")
	for name, mount := range map[string]func(ns.ID) (ns.Mount, error){
		"error": func(ns.ID) (ns.Mount, error) { return nil, full },
		"panic": func(ns.ID) (ns.Mount, error) { panic(full) },
	} {
		tab := ns.New(rcu.Default(), ns.Shared, mount)
		k := tab.NewTask()
		func() {
			defer func() {
				if r := recover(); (r != nil) != (name == "panic") {
					t.Errorf("%s: recovered %v", name, r)
				}
			}()
			_, err := k.Create()
			want(t, err, full)
		}()
		if tab.Len() != 0 || k.ID() != 0 {
			t.Errorf("%s: %d namespaces are left, the task is in %d", name, tab.Len(), k.ID())
		}
	}
}

// TestWalk_HoldsUpTheTeardown leaves a namespace that is being walked through.
func TestWalk_HoldsUpTheTeardown(t *testing.T) {
	eachStrategy(t, func(t *testing.T, tab *ns.Table, _ *rcu.Domain, s ns.Strategy, l *ledger) {
		k := tab.NewTask()
		id, err := k.Create()
		must(t, err)
		_, err = l.add(k)
		must(t, err)
		walking, goOn := make(chan struct{}), make(chan struct{})
		var wg sync.WaitGroup
		wg.Go(func() {
			must(t, tab.Walk(id, func(m ns.Mount) {
				close(walking)
				<-goOn
				m.(*mount).use("walk")
			}))
		})
		<-walking
		var left atomic.Bool
		wg.Go(func() {
			must(t, k.Leave(context.Background()))
			left.Store(true)
		})
		time.Sleep(time.Second) // in the bubble: others have done all that they can
		if left.Load() != (s == ns.Deferred) {
			t.Errorf("the task has left: %v", left.Load())
		}
		if l.unmounted.Load() != 0 || l.freed.Load() != 0 {
			t.Error("torn down under a walk")
		}
		want(t, tab.Walk(id, nil), ns.ErrNotFound)
		other := tab.NewTask()
		next, err := other.Create()
		must(t, err)
		if next == id {
			t.Error("the id is given out again while somebody may take it for the old one")
		}
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		want(t, tab.Barrier(ctx), context.DeadlineExceeded)
		close(goOn)
		wg.Wait()
		must(t, other.Exit(context.Background()))
	})
}

// TestTask_Enter_AfterTheLast has a task find a namespace just before the last one leaves it.
func TestTask_Enter_AfterTheLast(t *testing.T) {
	eachStrategy(t, func(t *testing.T, tab *ns.Table, _ *rcu.Domain, _ ns.Strategy, _ *ledger) {
		k := tab.NewTask()
		id, err := k.Create()
		must(t, err)
		enter := tab.Find(id)
		must(t, k.Leave(context.Background()))
		if enter() {
			t.Error("a namespace that is being torn down was entered")
		}
	})
}

// TestTask_Leave_InCallback leaves where nobody may wait.
func TestTask_Leave_InCallback(t *testing.T) {
	eachStrategy(t, func(t *testing.T, tab *ns.Table, d *rcu.Domain, s ns.Strategy, _ *ledger) {
		k := tab.NewTask()
		_, err := k.Create()
		must(t, err)
		d.Call(func() {
			err = k.Leave(context.Background())
		})
		must(t, d.Barrier(context.Background()))
		if s == ns.Deferred {
			must(t, err)
		} else {
			want(t, err, rcu.ErrDeadlock)
		}
	})
}

// TestTask_Leave_Deadline gives up waiting, for a grace period and for others that wait.
func TestTask_Leave_Deadline(t *testing.T) {
	eachStrategy(t, func(t *testing.T, tab *ns.Table, d *rcu.Domain, s ns.Strategy, l *ledger) {
		g := d.ReadLock()
		var wg sync.WaitGroup
		for range 3 {
			wg.Go(func() {
				k := tab.NewTask()
				_, err := k.Create()
				must(t, err)
				ctx, cancel := context.WithTimeout(context.Background(), time.Second)
				defer cancel()
				switch err := k.Leave(ctx); {
				case s == ns.Deferred:
					must(t, err)
				default:
					want(t, err, context.DeadlineExceeded)
				}
				want(t, k.Leave(ctx), ns.ErrOutside) // it has left all the same
			})
		}
		wg.Wait()
		if l.unmounted.Load() != 0 {
			t.Error("torn down in spite of a section")
		}
		g.Unlock()
	})
}

// hammer has tasks create, enter, leave and walk through namespaces of a few ids, and returns what was
// wrong.
func hammer(t *testing.T, d *rcu.Domain, l *ledger, tab *ns.Table, rounds int) map[string]int {
	t.Helper()
	ctx := context.Background()
	const tasks = 8
	var wg sync.WaitGroup
	for i := range tasks {
		wg.Go(func() {
			rnd := rand.New(rand.NewPCG(uint64(i), 1))
			k := tab.NewTask()
			for range rounds {
				id := ns.ID(1 + rnd.IntN(tasks))
				switch rnd.IntN(3) {
				case 0:
					tab.Walk(id, func(m ns.Mount) {
						m.(*mount).use("walk")
						runtime.Gosched()
						m.(*mount).use("walk")
					})
				case 1:
					if k.Enter(id) != nil {
						if _, err := k.Create(); err != nil {
							l.fault("Create: %v", err)
							continue
						}
					}
				case 2:
					if _, err := k.Create(); err != nil {
						l.fault("Create: %v", err)
						continue
					}
				}
				if k.ID() == 0 {
					continue
				}
				v, _ := k.Mount()
				m := v.(*mount)
				m.members.Add(1)
				o, err := l.add(k)
				if err != nil {
					l.fault("Add: %v", err)
				}
				if rnd.IntN(2) == 0 && k.Remove(o) != nil {
					l.fault("an object of its own is not there")
				}
				runtime.Gosched()
				m.use("task")
				m.members.Add(-1)
				if err := k.Leave(ctx); err != nil {
					l.fault("Leave: %v", err)
				}
			}
		})
	}
	wg.Wait()
	must(t, tab.Barrier(ctx))
	must(t, d.Close(ctx))
	if n := tab.Len(); n != 0 {
		l.fault("%d namespaces are left", n)
	}
	return l.check()
}

func TestHammerTable(t *testing.T) {
	rounds := 2000
	if testing.Short() {
		rounds = 200
	}
	for _, procs := range []int{1, 2, 2 * runtime.NumCPU()} {
		for _, s := range ns.Strategies {
			t.Run(fmt.Sprintf("procs=%d/%v", procs, s), func(t *testing.T) {
				defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(procs))
				var l ledger
				d := rcu.New()
				for what, n := range hammer(t, d, &l, ns.New(d, s, l.mount), rounds) {
					t.Errorf("%d times: %s", n, what)
				}
				if l.mounted.Load() == 0 {
					t.Error("nothing was mounted")
				}
			})
		}
	}
}

// TestMutants has hammer look at Tables that are broken in one place each.
func TestMutants(t *testing.T) {
	for name, m := range map[string]struct {
		new  func(*rcu.Domain, func(ns.ID) (ns.Mount, error)) *ns.Table
		want string
	}{
		"no grace period": {ns.NewBroken, "unmounted under a walk"},
		"early":           {ns.NewEarly, "unmounted under a walk"},
		"twice":           {ns.NewTwice, "unmounted twice"},
	} {
		patience.Until(t, name+": "+m.want, func() (any, bool) {
			var l ledger
			d := rcu.New()
			found := hammer(t, d, &l, m.new(d, l.mount), 200)
			return found, found[m.want] > 0
		})
	}
}

func Example() {
	d := rcu.New()
	tab := ns.New(d, ns.Deferred, func(id ns.ID) (ns.Mount, error) { return &printer{id}, nil })

	parent, child := tab.NewTask(), tab.NewTask()
	id, _ := parent.Create()
	child.Enter(id)
	queue, _ := child.Add("queue", func(v any) { fmt.Println(v, "released") })
	parent.Exit(context.Background())
	fmt.Println(child.Object(queue))
	child.Exit(context.Background()) // does not wait

	tab.Barrier(context.Background())
	fmt.Println(tab.Len(), "left")
	d.Close(context.Background())
	// Output:
	// queue <nil>
	// namespace 1 unmounted
	// queue released
	// 0 left
}

// A printer stands for a file system, a connection, a mapping.
type printer struct{ id ns.ID }

func (p *printer) Unmount() { fmt.Println("namespace", p.id, "unmounted") }
