package idr_test

import (
	"fmt"
	"math/rand/v2"
	"os/exec"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"unsafe"

	"github.com/quiesce-go/quiesce/idr"
	"github.com/quiesce-go/quiesce/rcu"
)

// A register is a Registry, its domain, and how often each thing was released.
type register struct {
	*idr.Registry[thing]
	d        *rcu.Domain
	released map[*thing]int // written by d's worker: to be read after a Barrier
}

func newRegister(t testing.TB) *register {
	r := &register{d: newDomain(t), released: make(map[*thing]int)}
	r.Registry = idr.NewRegistry(r.d, func(v *thing) { r.released[v]++ })
	return r
}

// mustAdd adds a new thing and returns its handle.
func (r *register) mustAdd(t testing.TB) (idr.Handle, *thing) {
	t.Helper()
	v := new(thing)
	h, err := r.Add(v)
	if err != nil {
		t.Fatal(err)
	}
	return h, v
}

// mustObtain returns the object of h.
func (r *register) mustObtain(t testing.TB, h idr.Handle) *idr.Object[thing] {
	t.Helper()
	o, err := r.Obtain(h)
	if err != nil || o.Handle() != h {
		t.Fatalf("Obtain(%#x): %v", h, err)
	}
	return o
}

// wantGone fails the test unless Obtain and Remove of h both give err.
func (r *register) wantGone(t testing.TB, err error, handles ...idr.Handle) {
	t.Helper()
	for _, h := range handles {
		if o, got := r.Obtain(h); o != nil || got != err {
			t.Errorf("Obtain(%#x): %v, %v, want %v", h, o, got, err)
		}
		if got := r.Remove(h); got != err {
			t.Errorf("Remove(%#x): %v, want %v", h, got, err)
		}
	}
}

// wantReleased fails the test unless v is released n times when the domain has come to rest.
func (r *register) wantReleased(t testing.TB, v *thing, n int) {
	t.Helper()
	if err := r.d.Barrier(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := r.released[v]; got != n {
		t.Errorf("released %d times, want %d", got, n)
	}
}

func wantPanic(t *testing.T, text string, f func()) {
	t.Helper()
	defer func() {
		t.Helper()
		if got := fmt.Sprint(recover()); !strings.Contains(got, text) {
			t.Errorf("panic %q, want %q", got, text)
		}
	}()
	f()
}

func TestRegistry(t *testing.T) {
	r := newRegister(t)
	r.wantGone(t, idr.ErrNotFound, 0, 1, 1<<32, 1<<32|1, 1<<63, 1<<64-1)
	h, v := r.mustAdd(t)
	if h == 0 {
		t.Error("a handle is 0")
	}
	section := r.d.ReadLock()
	o := r.mustObtain(t, h)
	if o.Value() != v || r.Len() != 1 {
		t.Errorf("Value %p, want %p; Len %d", o.Value(), v, r.Len())
	}
	r.wantGone(t, idr.ErrNotFound, 0, h+1, h+1<<32, h&(1<<32-1), 1<<63|h)
	if err := o.Lock(); err != nil {
		t.Fatal(err)
	}
	if err := r.Remove(h); err != nil { // while it is locked, in a section
		t.Fatal(err)
	}
	o.Unlock()
	r.wantGone(t, idr.ErrRemoved, h)
	if err := o.Lock(); err != idr.ErrRemoved {
		t.Errorf("Lock of a removed object: %v", err)
	}
	if err := o.Lock(); err != idr.ErrRemoved { // the one before has left it unlocked
		t.Errorf("Lock of a removed object: %v", err)
	}
	if o.Get() {
		t.Error("Get of a removed object without references")
	}
	// The slot is used again, at once, and the handle is another.
	h2, v2 := r.mustAdd(t)
	if h2 == h || h2.Slot() != h.Slot() {
		t.Errorf("handle %#x after %#x", h2, h)
	}
	r.wantGone(t, idr.ErrRemoved, h)
	if r.mustObtain(t, h2).Value() != v2 {
		t.Error("another value")
	}
	r.d.Call(func() {}) // callbacks do not run in the section
	section.Unlock()
	r.wantReleased(t, v, 1)
	r.wantReleased(t, v2, 0)
	idr.CheckRegistry(r.Registry)
}

// Objects are released after the last reference, whoever had it, and after a section.
func TestRegistry_References(t *testing.T) {
	r := newRegister(t)
	h, v := r.mustAdd(t)
	section := r.d.ReadLock()
	o := r.mustObtain(t, h)
	for range 2 {
		if !o.Get() {
			t.Fatal("Get")
		}
	}
	section.Unlock()
	o.Put()
	if err := r.Remove(h); err != nil {
		t.Fatal(err)
	}
	r.wantReleased(t, v, 0)
	if !o.Get() { // of an object that has another reference
		t.Fatal("Get")
	}
	o.Put()
	r.wantReleased(t, v, 0)
	o.Put()
	if o.Get() {
		t.Error("Get after the last Put")
	}
	r.wantReleased(t, v, 1)
	wantPanic(t, "Put of an Object without a reference", o.Put)

	// The last reference before the removal; then the section is what is waited for.
	h, v = r.mustAdd(t)
	section = r.d.ReadLock()
	o = r.mustObtain(t, h)
	o.Get()
	o.Put()
	if err := r.Remove(h); err != nil {
		t.Fatal(err)
	}
	for range 1000 {
		runtime.Gosched()
	}
	if r.d.Stats().CallbacksPending != 1 {
		t.Error("released in a section")
	}
	section.Unlock()
	r.wantReleased(t, v, 1)
}

func TestRegistry_Misuse(t *testing.T) {
	wantPanic(t, "nil Domain", func() { idr.NewRegistry[int](nil, nil) })
	wantPanic(t, "does not come from NewRegistry", func() { new(idr.Registry[int]).Add(nil) })
	r := newRegister(t)
	h, v := r.mustAdd(t)
	o := r.mustObtain(t, h)
	wantPanic(t, "Put of an Object without a reference", o.Put)
	wantPanic(t, "Unlock of an Object that is not locked", o.Unlock)
	o.Get()
	o.Put()
	wantPanic(t, "Put of an Object without a reference", o.Put)
	if err := o.Lock(); err != nil {
		t.Fatal(err)
	}
	o.Unlock()
	wantPanic(t, "Unlock of an Object that is not locked", o.Unlock)
	// Nothing has changed by all that.
	if r.mustObtain(t, h) != o || o.Lock() != nil {
		t.Error("not as before")
	}
	o.Unlock()
	r.wantReleased(t, v, 0)
	if err := r.Remove(h); err != nil {
		t.Fatal(err)
	}
	r.wantReleased(t, v, 1)
	if err := r.d.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	h, v = r.mustAdd(t)
	wantPanic(t, "idr: Remove: rcu: use of a closed Domain", func() { r.Remove(h) })
	r.wantGone(t, idr.ErrRemoved, h)
	if r.released[v] != 0 {
		t.Error("released")
	}
	idr.CheckRegistry(r.Registry)
	out, err := exec.Command("go", "vet", "-copylocks", "./testdata/copied").CombinedOutput()
	if _, none := exec.LookPath("go"); none != nil {
		t.Skipf("no go command to look for copies with: %v", none)
	}
	for _, name := range []string{"idr.IDA", "idr.Registry", "idr.Object"} {
		if err == nil || !strings.Contains(string(out), name) {
			t.Errorf("go vet does not find a copy of an %s: %v\n%s", name, err, out)
		}
	}
}

// A slot whose sequence number would begin again is not used again, and its handles are removed
// for ever.
func TestRegistry_Wrap(t *testing.T) {
	r := newRegister(t)
	h, _ := r.mustAdd(t)
	r.Remove(h)
	idr.SetSequence(r.Registry, 0, idr.MaxSequence-2)
	stale := []idr.Handle{h}
	for range 2 {
		h, _ := r.mustAdd(t)
		if h.Slot() != 0 || h < stale[len(stale)-1] {
			t.Fatalf("handle %#x", h)
		}
		r.mustObtain(t, h)
		if err := r.Remove(h); err != nil {
			t.Fatal(err)
		}
		stale = append(stale, h)
		idr.CheckRegistry(r.Registry)
	}
	r.wantGone(t, idr.ErrNotFound, 0)
	for range 100 {
		h, _ := r.mustAdd(t)
		if h.Slot() != 1 {
			t.Fatalf("handle %#x", h)
		}
		r.wantGone(t, idr.ErrRemoved, stale...)
		r.Remove(h)
	}
	if r.Len() != 0 {
		t.Error("Len", r.Len())
	}
	idr.CheckRegistry(r.Registry)
}

func TestRegistry_Full(t *testing.T) {
	r := newRegister(t)
	idr.SetSlots(r.Registry, 100)
	var handles []idr.Handle
	for range 100 {
		h, _ := r.mustAdd(t)
		handles = append(handles, h)
	}
	if h, err := r.Add(nil); h != 0 || err != idr.ErrFull {
		t.Errorf("Add: %#x, %v", h, err)
	}
	if err := r.Remove(handles[50]); err != nil {
		t.Fatal(err)
	}
	if h, _ := r.mustAdd(t); h.Slot() != 50 {
		t.Errorf("slot %d", h.Slot())
	}
	r.wantGone(t, idr.ErrRemoved, handles[50])
	idr.CheckRegistry(r.Registry)
}

func TestRegistry_All(t *testing.T) {
	r := newRegister(t)
	var handles []idr.Handle
	for range 200 {
		h, _ := r.mustAdd(t)
		handles = append(handles, h)
	}
	section := r.d.ReadLock()
	defer section.Unlock()
	for i, h := range handles {
		if i%3 == 0 {
			r.Remove(h)
		}
	}
	i := 1
	for o := range r.All() {
		if o.Handle() != handles[i] {
			t.Fatalf("All gives %#x, want %#x", o.Handle(), handles[i])
		}
		at, err := r.At(i)
		if at != o || err != nil {
			t.Fatalf("At(%d): %v, %v", i, at, err)
		}
		if i++; i%3 == 0 {
			i++
		}
		if i > 100 {
			break
		}
		r.Remove(o.Handle()) // in the body
	}
	for _, i := range []int{-1, 0, 1, 3, 200, 1 << 20, 1<<31 - 1} {
		if o, err := r.At(i); o != nil || err != idr.ErrNotFound {
			t.Errorf("At(%d): %v, %v", i, o, err)
		}
	}
}

func TestRegistry_Costs(t *testing.T) {
	r := newRegister(t)
	h, _ := r.mustAdd(t)
	stale, _ := r.mustAdd(t)
	r.Remove(stale)
	for name, f := range map[string]func(){
		"Obtain": func() { r.Obtain(h) },
		"Obtain, Lock, Unlock, Get, Put": func() {
			section := r.d.ReadLock()
			o, _ := r.Obtain(h)
			o.Lock()
			o.Get()
			o.Put()
			o.Unlock()
			section.Unlock()
		},
		"a stale handle": func() { r.Obtain(stale); r.Remove(stale) },
		"no handle":      func() { r.Obtain(12345); r.Obtain(h + 1<<40) },
		"At and All": func() {
			r.At(0)
			for range r.All() {
			}
		},
	} {
		if n := testing.AllocsPerRun(100, f); n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
	var v thing
	if n := testing.AllocsPerRun(1000, func() { h, _ := r.Add(&v); r.Remove(h) }); n != 1 {
		t.Errorf("Add and Remove: %v allocations", n)
	}
	if size := unsafe.Sizeof(idr.Object[thing]{}); size > 128 {
		t.Errorf("an Object is %d bytes, and shares its cache lines", size)
	}
	const n = 100_000
	per := float64(heapOf(func() any {
		r := idr.NewRegistry[thing](r.d, nil)
		for range n {
			r.Add(&v)
		}
		return r
	})) / n
	t.Logf("an object: %.1f bytes", per)
	if per > 148 {
		t.Errorf("an object takes %.1f bytes", per)
	}
}

// Slots were marked with what a key had too many of, generations came round, and a slot's reuse
// took memory.
func TestFault_I9(t *testing.T) {
	n := 1_000_000
	if testing.Short() {
		n = 50_000
	}
	d := newDomain(t)
	r := idr.NewRegistry[thing](d, nil)
	v := new(thing)
	first, _ := r.Add(v)
	r.Remove(first)
	var last idr.Handle
	grown := heapOf(func() any {
		for range n {
			h, err := r.Add(v)
			if err != nil || h.Slot() != 0 || h <= last {
				t.Fatalf("%#x after %#x, %v", h, last, err)
			}
			if _, err := r.Obtain(h - 1<<32); err != idr.ErrRemoved {
				t.Fatalf("Obtain(%#x): %v", h-1<<32, err)
			}
			if err := r.Remove(h); err != nil {
				t.Fatal(err)
			}
			last = h
		}
		if err := d.Barrier(t.Context()); err != nil {
			t.Fatal(err)
		}
		return nil
	})
	if grown > 100_000 {
		t.Errorf("%d objects one after the other in a slot take %d bytes", n, grown)
	}
	live, err := r.Add(v)
	if err != nil {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(1, 9))
	for range n {
		h := idr.Handle(rng.Uint64())
		switch rng.IntN(4) {
		case 0:
			h >>= rng.IntN(64)
		case 1:
			h = h<<32 | idr.Handle(rng.IntN(70))
		}
		_, err := r.Obtain(h)
		switch {
		case h == live && err == nil:
		case h.Slot() == 0 && 1<<32 <= h && h < live && err == idr.ErrRemoved:
		case (h.Slot() != 0 || h < 1<<32 || h > live) && err == idr.ErrNotFound:
		default:
			t.Fatalf("Obtain(%#x): %v; live is %#x", h, err, live)
		}
	}
	idr.CheckRegistry(r)
}

// playRegistry is play for a Registry.
func playRegistry(t testing.TB, p *tape, n int) (calls []string, err error) {
	type object struct {
		v       *thing
		o       *idr.Object[thing]
		refs    int
		removed bool
		locked  bool
	}
	r := newRegister(t)
	idr.SetSlots(r.Registry, 150)
	objects := make(map[idr.Handle]*object)
	var handles []idr.Handle
	live := 0
	seqs := make(map[int]uint64) // by slot, the last one
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("panic: %v", r)
		}
	}()
	panics := func(f func()) (did bool) {
		defer func() { did = recover() != nil }()
		f()
		return
	}
	for i := 0; i < n && p.more(); i++ {
		var got, want any
		call := func(format string, args ...any) { calls = append(calls, fmt.Sprintf(format, args...)) }
		// Mostly a handle that was given out, and else one near it.
		var h idr.Handle
		if len(handles) > 0 {
			h = handles[p.int(len(handles))]
		}
		switch p.int(12) {
		case 0:
			h += 1 << 32 * idr.Handle(p.int(5))
		case 1:
			h += idr.Handle(p.int(200))
		case 2:
			h = idr.Handle(p.int(1 << 16))
		}
		o := objects[h]
		gone := func() error {
			switch seq := uint64(h >> 32); {
			case seq == 0 || seq > seqs[h.Slot()]:
				return idr.ErrNotFound
			case o == nil || o.removed:
				return idr.ErrRemoved
			}
			return nil
		}
		switch k := p.int(12); {
		case k < 4:
			call("Add")
			v := new(thing)
			added, err := r.Add(v)
			switch {
			case live == 150:
				got, want = err, idr.ErrFull
			case err != nil || objects[added] != nil || uint64(added>>32) != seqs[added.Slot()]+1:
				return calls, fmt.Errorf("got %#x, %v", added, err)
			default:
				live++
				seqs[added.Slot()]++
				objects[added] = &object{v: v}
				handles = append(handles, added)
			}
		case k < 6:
			call("Remove(%#x)", h)
			want = gone()
			got = r.Remove(h)
			if want == error(nil) {
				o.removed = true
				live--
			}
		case k < 8:
			call("Obtain(%#x)", h)
			want = gone()
			x, err := r.Obtain(h)
			got = err
			if err == nil && want == error(nil) {
				if x.Value() != o.v || x.Handle() != h || o.o != nil && o.o != x {
					return calls, fmt.Errorf("another object")
				}
				o.o = x
			}
		case o == nil || o.o == nil: // never obtained
		case k == 8:
			call("Get of %#x", h)
			got, want = o.o.Get(), !o.removed || o.refs > 0
			if want.(bool) {
				o.refs++
			}
		case k < 11:
			call("Put of %#x", h)
			got, want = panics(o.o.Put), o.refs == 0
			o.refs = max(0, o.refs-1)
		case o.locked:
			call("Unlock of %#x", h)
			got, want = panics(o.o.Unlock), false
			o.locked = false
		case p.int(4) == 0:
			call("Unlock of %#x", h)
			got, want = panics(o.o.Unlock), true
		default:
			call("Lock of %#x", h)
			want = error(nil)
			if o.removed {
				want = idr.ErrRemoved
			}
			got = o.o.Lock()
			o.locked = got == nil
		}
		if got != want {
			return calls, fmt.Errorf("got %v, want %v", got, want)
		}
		if r.Len() != live {
			return calls, fmt.Errorf("Len is %d, want %d", r.Len(), live)
		}
		idr.CheckRegistry(r.Registry)
	}
	if err := r.d.Barrier(t.Context()); err != nil {
		return calls, err
	}
	for h, o := range objects {
		want := 0
		if o.removed && o.refs == 0 {
			want = 1
		}
		if r.released[o.v] != want {
			return calls, fmt.Errorf("the object of %#x was released %d times, want %d", h, r.released[o.v], want)
		}
	}
	return calls, r.d.Close(t.Context())
}

func TestModelRegistry(t *testing.T) {
	rounds := 100
	if testing.Short() {
		rounds = 10
	}
	for range rounds {
		seed := rand.Uint64()
		if calls, err := playRegistry(t, &tape{rng: rand.New(rand.NewPCG(seed, 0))}, 600); err != nil {
			t.Fatalf("seed %#x: %v\nthe last calls were: %q", seed, err, tail(calls))
		}
	}
}

func FuzzRegistry(f *testing.F) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 10 {
		data := make([]byte, 800)
		for i := range data {
			data[i] = byte(rng.Uint32())
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if calls, err := playRegistry(t, &tape{data: data}, 500); err != nil {
			t.Fatalf("%v\nthe calls were: %q", err, calls)
		}
	})
}

// TestHammerRegistry has goroutines add, obtain, lock, reference and remove objects. A released
// thing is poisoned, and used for another object. Nobody sees a poisoned one, in a section or with
// a reference, or one that is another handle's; nobody has the lock at once with another, or gets it
// after the removal; and each is released once.
func TestHammerRegistry(t *testing.T) {
	type item struct {
		handle atomic.Uint64 // set when Add has returned
		// Plain, for the race detector to look at them.
		dead   bool
		locked int
	}
	atProcs(t, []int{1, 2, 4}, func(t *testing.T) {
		d := newDomain(t)
		var adds, releases atomic.Int64
		pool := make(chan *item, 1000)
		var problem atomic.Pointer[string]
		r := idr.NewRegistry(d, func(v *item) {
			if v.dead {
				problem.CompareAndSwap(nil, new("released twice"))
			}
			v.dead = true
			v.handle.Store(0)
			releases.Add(1)
			select {
			case pool <- v:
			default:
			}
		})
		var handles [16]atomic.Uint64
		run := newRun(t)
		for g := range 4 {
			run.Go(func() error {
				rng := rand.New(rand.NewPCG(uint64(g), 3))
				for run.More() {
					at := &handles[rng.IntN(len(handles))]
					if rng.IntN(20) == 0 {
						runtime.Gosched() // for d's worker, too
					}
					if rng.IntN(8) == 0 {
						var v *item
						select {
						case v = <-pool:
						default:
							v = new(item)
						}
						v.dead, v.locked = false, 0
						h, err := r.Add(v)
						if err != nil {
							return err
						}
						adds.Add(1)
						v.handle.Store(uint64(h))
						if old := idr.Handle(at.Swap(uint64(h))); old != 0 {
							if err := r.Remove(old); err != nil {
								return errorf("Remove(%#x): %v", old, err)
							}
							if _, err := r.Obtain(old); err != idr.ErrRemoved {
								return errorf("Obtain(%#x) after its removal: %v", old, err)
							}
						}
						continue
					}
					h := idr.Handle(at.Load())
					if h == 0 {
						continue
					}
					bad := func(v *item) error {
						if v.dead {
							return errorf("the thing of %#x was released in use", h)
						}
						if have := v.handle.Load(); have != uint64(h) {
							return errorf("Obtain(%#x) found the thing of %#x", h, have)
						}
						return nil
					}
					section := d.ReadLock()
					o, err := r.Obtain(h)
					if err != nil {
						section.Unlock()
						if idr.Handle(at.Load()) == h {
							return errorf("Obtain(%#x): %v", h, err)
						}
						continue
					}
					v := o.Value()
					err = bad(v)
					if err == nil && o.Lock() == nil {
						if v.locked++; v.locked != 1 {
							err = errorf("%#x is locked twice", h)
						}
						if rng.IntN(4) == 0 {
							runtime.Gosched()
						}
						v.locked--
						o.Unlock()
					}
					referenced := rng.IntN(2) == 0 && o.Get()
					section.Unlock()
					if err == nil && referenced {
						runtime.Gosched()
						if err = bad(v); err == nil && o.Lock() == nil {
							o.Unlock()
						} else if err == nil && idr.Handle(at.Load()) == h {
							err = errorf("the lock of %#x is not to be had", h)
						}
						o.Put()
					}
					if err != nil {
						return err
					}
				}
				return nil
			})
		}
		run.Go(func() error {
			for run.More() {
				runtime.Gosched()
				section := d.ReadLock()
				last := -1
				for o := range r.All() {
					if at := o.Handle().Slot(); at <= last || o.Value().dead {
						section.Unlock()
						return errorf("All gave slot %d after %d, dead is %v", at, last, o.Value().dead)
					} else {
						last = at
					}
				}
				section.Unlock()
			}
			return nil
		})
		run.Wait()
		for i := range handles {
			if h := idr.Handle(handles[i].Load()); h != 0 {
				if err := r.Remove(h); err != nil {
					t.Error(err)
				}
			}
		}
		if err := d.Barrier(t.Context()); err != nil {
			t.Fatal(err)
		}
		if p := problem.Load(); p != nil {
			t.Error(*p)
		}
		t.Logf("%d objects", adds.Load())
		if adds.Load() != releases.Load() || r.Len() != 0 {
			t.Errorf("%d added, %d released, Len %d", adds.Load(), releases.Load(), r.Len())
		}
		idr.CheckRegistry(r)
	})
}

// TestHammerRegistry_Lock has a goroutine that removes an object while others wait for its lock: who
// gets it got it before.
func TestHammerRegistry_Lock(t *testing.T) {
	atProcs(t, []int{1, 2, 4}, func(t *testing.T) {
		r := newRegister(t)
		run := newRun(t)
		run.Go(func() error {
			for run.More() {
				h, _ := r.mustAdd(t)
				o := r.mustObtain(t, h)
				o.Get()
				if err := o.Lock(); err != nil {
					return err
				}
				done := make(chan error)
				const waiters = 3
				for range waiters {
					go func() {
						err := o.Lock()
						if err == nil {
							o.Unlock()
						}
						done <- err
					}()
				}
				runtime.Gosched()
				if err := r.Remove(h); err != nil {
					return err
				}
				o.Unlock()
				for range waiters {
					if err := <-done; err != idr.ErrRemoved {
						return errorf("the lock of a removed object was got: %v", err)
					}
				}
				o.Put()
			}
			return nil
		})
		run.Wait()
	})
}
