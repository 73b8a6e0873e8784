package rcu_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/quiesce-go/quiesce/rcu"
)

// A file that readers use is replaced, and the old one closed when nobody reads it any more.
func Example() {
	type file struct{ name string }
	var current rcu.Pointer[file]
	domain := rcu.New()
	current.Store(&file{"old"})

	g := domain.ReadLock()
	f := current.Load()

	current.Replace(domain, &file{"new"}, func(f *file) { fmt.Println("close", f.name) })

	fmt.Println("read", f.name) // still open
	g.Unlock()

	domain.Close(context.Background())
	// Output:
	// read old
	// close old
}

func ExampleDomain() {
	d := rcu.New()
	d.Read(func() { fmt.Println("in a section") })
	if err := d.Synchronize(context.Background()); err == nil {
		fmt.Println("nobody is in a section that began before")
	}
	fmt.Println(d.Close(context.Background()))
	fmt.Println(errors.Is(d.Synchronize(context.Background()), rcu.ErrClosed))
	// Output:
	// in a section
	// nobody is in a section that began before
	// <nil>
	// true
}

func ExampleDomain_ReadLock() {
	d := rcu.New()
	g := d.ReadLock()
	defer g.Unlock()
	fmt.Println("reading")
	// Output: reading
}

// Synchronize does not wait longer than its context.
func ExampleDomain_Synchronize() {
	d := rcu.New()
	g := d.ReadLock()
	ctx, cancel := context.WithTimeout(context.Background(), time.Millisecond)
	defer cancel()
	fmt.Println(d.Synchronize(ctx))
	g.Unlock()
	fmt.Println(d.Synchronize(context.Background()))
	// Output:
	// rcu: Synchronize: context deadline exceeded
	// <nil>
}

func ExampleDomain_Call() {
	d := rcu.New()
	d.Call(func() { fmt.Println("no reader is left") })
	d.Barrier(context.Background())
	// Output: no reader is left
}

// Go's function may wait, even for its own Domain.
func ExampleDomain_Go() {
	d := rcu.New()
	done := make(chan struct{})
	d.Go(func() {
		defer close(done)
		d.Synchronize(context.Background())
		fmt.Println("two grace periods later")
	})
	<-done
	// Output: two grace periods later
}

// An updater that has something else to do asks for a grace period and looks now and then.
func ExampleDomain_StartPoll() {
	d := rcu.New()
	g := d.ReadLock()
	c := d.StartPoll()
	fmt.Println(d.Poll(c))
	g.Unlock()
	d.Wait(context.Background(), c)
	fmt.Println(d.Poll(c))
	// Output:
	// false
	// true
}

// A Cookie can be kept with an object, to know later whether its readers have left meanwhile.
func ExampleCookie() {
	d := rcu.New()
	type object struct {
		name    string
		readers rcu.Cookie
	}
	o := object{"o", d.Cookie()}
	fmt.Println(d.Poll(o.readers))
	d.Synchronize(context.Background()) // by somebody else
	fmt.Println(d.Poll(o.readers))
	// Output:
	// false
	// true
}

func ExampleReader() {
	d := rcu.New()
	var p rcu.Pointer[int]
	p.Store(new(int))

	r := d.NewReader() // one per goroutine
	defer r.Close()
	for range 3 {
		r.Lock()
		fmt.Println(*p.Load())
		r.Unlock()
	}
	// Output:
	// 0
	// 0
	// 0
}

// In a long loop a reader lets grace periods end now and then.
func ExampleReader_Refresh() {
	d := rcu.New()
	r := d.NewReader()
	defer r.Close()
	r.Lock()
	defer r.Unlock()
	sum := 0
	for i := range 10000 {
		sum += i // what it found before Refresh must not be used after
		if i%1000 == 999 {
			r.Refresh()
		}
	}
	fmt.Println(sum)
	// Output: 49995000
}

// A Guard may be unlocked by another goroutine.
func ExampleGuard() {
	d := rcu.New()
	g := d.ReadLock()
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer g.Unlock()
		fmt.Println("the section goes on here")
	}()
	<-done
	// Output: the section goes on here
}

// A Head in the object makes a callback without an allocation.
func ExampleHead() {
	type object struct {
		head rcu.Head
		id   int
	}
	d := rcu.New()
	o := &object{id: 7}
	d.CallHead(&o.head, func(*rcu.Head) { fmt.Println("free", o.id) })
	d.Barrier(context.Background())
	// Output: free 7
}

func ExamplePointer() {
	var p rcu.Pointer[string]
	s := "hello"
	p.Store(&s)
	fmt.Println(*p.Load())
	fmt.Println(p.CompareAndSwap(&s, nil), p.Load() == nil)
	// Output:
	// hello
	// true true
}

func ExampleRetire() {
	d := rcu.New()
	rcu.Retire(d, "an object", func(s string) { fmt.Println("free", s) })
	d.Barrier(context.Background())
	// Output: free an object
}

func ExampleStats() {
	d := rcu.New()
	r := d.NewReader()
	defer r.Close()
	d.Call(func() {})
	d.Barrier(context.Background())
	s := d.Stats()
	fmt.Println(s.GracePeriods, s.CallbacksQueued, s.CallbacksRun, s.CallbacksPending, s.Readers)
	// Output: 1 1 1 0 1
}

// Where a section does not end, TryCall says when too much is waiting for it.
func ExampleWithMaxPending() {
	d := rcu.New(rcu.WithMaxPending(2))
	g := d.ReadLock()
	for i := range 3 {
		fmt.Println(i, d.TryCall(func() {}))
	}
	g.Unlock()
	d.Barrier(context.Background())
	fmt.Println(d.TryCall(func() {}))
	// Output:
	// 0 <nil>
	// 1 <nil>
	// 2 rcu: TryCall: rcu: too many callbacks pending
	// <nil>
}

// Callbacks of a lazy Domain wait for others, unless somebody waits for them.
func ExampleWithLazy() {
	d := rcu.New(rcu.WithLazy(time.Hour))
	for i := range 3 {
		d.Call(func() { fmt.Println("callback", i) })
	}
	d.Barrier(context.Background())
	// Unordered output:
	// callback 0
	// callback 1
	// callback 2
}

// A Reader that holds up a grace period is named by where it was made.
func ExampleWithStallHandler() {
	stalled := make(chan rcu.Stall)
	d := rcu.New(
		rcu.WithStallTimeout(time.Millisecond),
		rcu.WithStallHandler(func(s rcu.Stall) { stalled <- s }),
	)
	r := d.NewReader()
	r.Lock()
	d.Call(func() {})

	s := <-stalled
	fmt.Println(s.Pending, "callback waits for", len(s.Sections), "section")
	fmt.Println(strings.Contains(s.Sections[0].Created, "ExampleWithStallHandler"))

	r.Unlock()
	d.Close(context.Background())
	// Output:
	// 1 callback waits for 1 section
	// true
}

// Synchronize in a section of the same goroutine waits for itself. WithDebug finds that.
func ExampleWithDebug() {
	d := rcu.New(rcu.WithDebug(), rcu.WithLogger(slog.New(slog.DiscardHandler)))
	g := d.ReadLock()
	err := d.Synchronize(context.Background())
	fmt.Println(errors.Is(err, rcu.ErrDeadlock), strings.Contains(err.Error(), "ExampleWithDebug"))
	g.Unlock()
	// Output: true true
}

// A Domain is an expvar.Var.
func ExampleDomain_String() {
	d := rcu.New()
	defer d.Close(context.Background())
	shown := d.String() // what expvar.Publish("rcu", d) shows
	fmt.Println(strings.HasPrefix(shown, `{"grace_periods":0,`))
	// Output: true
}

func ExampleWithLogger() {
	log := slog.New(slog.NewTextHandler(os.Stdout, nil))
	d := rcu.New(rcu.WithLogger(log))
	fmt.Println(strings.Contains("membarrier fenced race", d.Stats().ReaderMode))
	// Output: true
}
