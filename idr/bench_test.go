package idr_test

import (
	"fmt"
	"math"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/quiesce-go/quiesce/idr"
	"github.com/quiesce-go/quiesce/percpu"
	"github.com/quiesce-go/quiesce/rcu"
)

type object struct {
	id uint64
	_  [3]uint64
}

var benchSizes = []struct {
	name string
	n    int
}{{"1k", 1 << 10}, {"64k", 1 << 16}, {"1M", 1 << 20}}

var objects = sync.OnceValue(func() []object {
	o := make([]object, 1<<20)
	for i := range o {
		o[i].id = uint64(i)
	}
	return o
})

// A loop looks n ids up, from the state x on, and returns the state after it. A lookup is so
// short that the loops have to have it in them: calling it through a function value, as one loop
// for all tables would, costs as much again. All ids are present. Those in random order come from
// a generator in a register, and no lookup waits for the last: this is throughput, not latency.
type loop func(x uint64, n int) uint64

const (
	lcgMul = 6364136223846793005
	lcgAdd = 1442695040888963407
)

var lookups = []struct {
	name string
	make func(n int) (seq, rand loop)
}{
	{"idr", idrLoops},
	{"slice", sliceLoops},
	{"sync.Map", syncMapLoops},
	{"RWMutex+map", lockedMapLoops},
}

var sink *object

func found(n, want int, last *object) {
	if n != want {
		panic("an id was not found")
	}
	sink = last
}

func filled(n int) *idr.IDR[object] {
	x := new(idr.IDR[object])
	for i := range n {
		if _, err := x.Alloc(&objects()[i]); err != nil {
			panic(err)
		}
	}
	return x
}

func idrLoops(size int) (seq, rand loop) {
	t, mask := filled(size), uint64(size-1)
	seq = func(x uint64, n int) uint64 {
		var last *object
		hits := 0
		for range n {
			x++
			if last = t.Find(int(x & mask)); last != nil {
				hits++
			}
		}
		found(hits, n, last)
		return x
	}
	rand = func(x uint64, n int) uint64 {
		var last *object
		hits := 0
		for range n {
			x = x*lcgMul + lcgAdd
			if last = t.Find(int(x >> 33 & mask)); last != nil {
				hits++
			}
		}
		found(hits, n, last)
		return x
	}
	return
}

// sliceLoops is the floor: no growth, no removal, no concurrency.
func sliceLoops(size int) (seq, rand loop) {
	t, mask := make([]*object, size), uint64(size-1)
	for i := range t {
		t[i] = &objects()[i]
	}
	seq = func(x uint64, n int) uint64 {
		var last *object
		hits := 0
		for range n {
			x++
			if id := x & mask; id < uint64(len(t)) {
				if last = t[id]; last != nil {
					hits++
				}
			}
		}
		found(hits, n, last)
		return x
	}
	rand = func(x uint64, n int) uint64 {
		var last *object
		hits := 0
		for range n {
			x = x*lcgMul + lcgAdd
			if id := x >> 33 & mask; id < uint64(len(t)) {
				if last = t[id]; last != nil {
					hits++
				}
			}
		}
		found(hits, n, last)
		return x
	}
	return
}

func syncMapLoops(size int) (seq, rand loop) {
	t, mask := new(sync.Map), uint64(size-1)
	for i := range size {
		t.Store(i, &objects()[i])
	}
	get := func(id uint64) *object {
		v, _ := t.Load(int(id & mask))
		return v.(*object)
	}
	return calling(get)
}

func lockedMapLoops(size int) (seq, rand loop) {
	t, mask := make(map[int]*object), uint64(size-1)
	for i := range size {
		t[i] = &objects()[i]
	}
	var mu sync.RWMutex
	get := func(id uint64) *object {
		mu.RLock()
		v := t[int(id&mask)]
		mu.RUnlock()
		return v
	}
	return calling(get)
}

// calling makes loops for tables that are slow enough for a call not to matter.
func calling(get func(id uint64) *object) (seq, rand loop) {
	seq = func(x uint64, n int) uint64 {
		for range n {
			x++
			sink = get(x)
		}
		return x
	}
	rand = func(x uint64, n int) uint64 {
		for range n {
			x = x*lcgMul + lcgAdd
			sink = get(x >> 33)
		}
		return x
	}
	return
}

var seeds atomic.Uint64

// benchLoop measures l in as many goroutines as GOMAXPROCS says, and reports the time of one
// lookup. Each run starts elsewhere, after size lookups that fill the caches.
func benchLoop(b *testing.B, l loop, size int) {
	const batch = 1024
	seed := func() uint64 { return seeds.Add(1) * 0x9e3779b97f4a7c15 }
	for start := time.Now(); ; {
		l(seed(), size)
		if time.Since(start) > time.Millisecond {
			break
		}
	}
	b.ReportAllocs()
	if runtime.GOMAXPROCS(0) == 1 {
		x := seed()
		for b.Loop() {
			x = l(x, batch)
		}
	} else {
		b.ResetTimer()
		b.RunParallel(func(pb *testing.PB) {
			x := seed()
			for pb.Next() {
				x = l(x, batch)
			}
		})
	}
	b.StopTimer()
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/batch, "ns/op")
}

func benchLookups(b *testing.B, prefix string, make func(n int) (seq, rand loop)) {
	for _, size := range benchSizes {
		if size.n > 1<<16 && os.Getenv("ANCHORS_QUICK") != "" {
			continue
		}
		loops := sync.OnceValues(func() (seq, rand loop) {
			seq, rand = make(size.n)
			runtime.GC() // not while it is measured
			return seq, rand
		})
		b.Run(prefix+"/n="+size.name+"/order=seq", func(b *testing.B) {
			seq, _ := loops()
			benchLoop(b, seq, size.n)
		})
		b.Run(prefix+"/n="+size.name+"/order=rand", func(b *testing.B) {
			_, rand := loops()
			benchLoop(b, rand, size.n)
		})
	}
}

// BenchmarkAnchor has the names and keys under which other implementations are measured beside.
func BenchmarkAnchor(b *testing.B) { benchLookups(b, "quiesce/lookup", idrLoops) }

// BenchmarkFind models the read side of a table of sessions or timers: all ids are present, and
// looked up by all CPUs.
func BenchmarkFind(b *testing.B) {
	for _, l := range lookups {
		benchLookups(b, "impl="+l.name, l.make)
	}
}

func farID(i int) int { return math.MaxInt32/2 + i*1000 }

// BenchmarkFindFar is Find for ids that the directory does not have.
func BenchmarkFindFar(b *testing.B) {
	for _, n := range []int{1, 64, 4096} {
		b.Run(fmt.Sprintf("ids=%d", n), func(b *testing.B) {
			var x idr.IDR[object]
			for i := range n {
				if err := x.Insert(farID(i), &objects()[i]); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportAllocs()
			i := 0
			for b.Loop() {
				sink = x.Find(farID(i))
				if i++; i == n {
					i = 0
				}
			}
		})
	}
}

// A lockedTable is what one writes without an IDR: a map of the objects and a list of the ids that
// were freed.
type lockedTable struct {
	mu   sync.RWMutex
	m    map[int]*object
	free []int
	next int
}

func (t *lockedTable) alloc(v *object) int {
	t.mu.Lock()
	id := t.next
	if n := len(t.free); n > 0 {
		id, t.free = t.free[n-1], t.free[:n-1]
	} else {
		t.next++
	}
	t.m[id] = v
	t.mu.Unlock()
	return id
}

func (t *lockedTable) remove(id int) *object {
	t.mu.Lock()
	v := t.m[id]
	delete(t.m, id)
	t.free = append(t.free, id)
	t.mu.Unlock()
	return v
}

// BenchmarkAllocRemove models objects that come and go beside n that stay: one operation removes
// an id and allocates one.
func BenchmarkAllocRemove(b *testing.B) {
	for _, size := range benchSizes {
		n := size.n
		victim := func(i int) int { return int(uint64(i) * lcgMul >> 33 & uint64(n-1)) }
		b.Run("impl=idr/n="+size.name, func(b *testing.B) {
			x := filled(n)
			var at atomic.Int64
			b.ReportAllocs()
			b.ResetTimer()
			b.RunParallel(func(pb *testing.PB) {
				i := int(at.Add(1)) << 24
				for pb.Next() {
					i++
					if v := x.Remove(victim(i)); v != nil {
						if _, err := x.Alloc(v); err != nil {
							b.Error(err)
						}
					}
				}
			})
		})
		b.Run("impl=RWMutex+map+free/n="+size.name, func(b *testing.B) {
			t := &lockedTable{m: make(map[int]*object)}
			for i := range n {
				t.alloc(&objects()[i])
			}
			var at atomic.Int64
			b.ReportAllocs()
			b.ResetTimer()
			b.RunParallel(func(pb *testing.PB) {
				i := int(at.Add(1)) << 24
				for pb.Next() {
					i++
					if v := t.remove(victim(i)); v != nil {
						t.alloc(v)
					}
				}
			})
		})
	}
}

// BenchmarkAlloc models a table that fills: the time is that of one id, leaves and growth of the
// directory with it.
func BenchmarkAlloc(b *testing.B) {
	const n = 1 << 20
	b.ReportAllocs()
	for b.Loop() {
		filled(n)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/id")
}

// BenchmarkAllocFull models the search for the one free id of a range among a million, where the
// lowest free one is below the range: it goes up and down the tree once.
func BenchmarkAllocFull(b *testing.B) {
	const n = 1 << 20
	x := filled(n)
	x.Remove(0)
	v := x.Remove(n / 2)
	b.ReportAllocs()
	for b.Loop() {
		id, err := x.AllocRange(v, 1, n-1)
		if err != nil || id != n/2 {
			b.Fatal(id, err)
		}
		x.Remove(id)
	}
}

// BenchmarkAllocCyclic models timers and process ids: the newest come, the oldest go.
func BenchmarkAllocCyclic(b *testing.B) {
	const live = 1000
	var x idr.IDR[object]
	var ids [live]int
	i := 0
	b.ReportAllocs()
	for b.Loop() {
		if i >= live {
			x.Remove(ids[i%live])
		}
		ids[i%live], _ = x.AllocCyclic(&objects()[0], 0, 1<<22)
		i++
	}
}

// BenchmarkRemoveRetire is the way of an object through the domain and back to a free id.
func BenchmarkRemoveRetire(b *testing.B) {
	d := rcu.New()
	var x idr.IDR[object]
	v := &objects()[0]
	b.ReportAllocs()
	for b.Loop() {
		id, err := x.Alloc(v)
		if err != nil {
			b.Fatal(err)
		}
		if !x.RemoveRetire(d, id, nil) {
			b.Fatal("not removed")
		}
	}
	b.StopTimer()
	if err := d.Close(b.Context()); err != nil {
		b.Fatal(err)
	}
}

// BenchmarkAll is the time of one entry, of a million.
func BenchmarkAll(b *testing.B) {
	const n = 1 << 20
	x := filled(n)
	b.ReportAllocs()
	for b.Loop() {
		seen := 0
		for range x.All() {
			seen++
		}
		if seen != n {
			b.Fatal(seen)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/entry")
}

// BenchmarkNext is the time of one step in a walk over ids that are far apart.
func BenchmarkNext(b *testing.B) {
	var x idr.IDR[object]
	for i := range 4096 {
		if err := x.Insert(i*1000, &objects()[i]); err != nil {
			b.Fatal(err)
		}
	}
	id := 0
	b.ReportAllocs()
	for b.Loop() {
		at, _, ok := x.Next(id)
		if id = at + 1; !ok {
			id = 0
		}
	}
}

// BenchmarkObtain models a call that names an object by a number that it was given: find it, lock it,
// leave it, for one of 1000 objects. The rival has one lock for the lookup; both then have that of
// the object.
func BenchmarkObtain(b *testing.B) {
	const n = 1000
	for _, lock := range []bool{true, false} {
		b.Run(fmt.Sprintf("impl=registry/lock=%v", lock), func(b *testing.B) {
			d := rcu.New()
			r := idr.NewRegistry[object](d, nil)
			var handles [n]idr.Handle
			for i := range handles {
				handles[i], _ = r.Add(&objects()[i])
			}
			var at atomic.Uint64
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				reader := d.NewReader()
				defer reader.Close()
				for x := at.Add(1) << 40; pb.Next(); {
					x = x*lcgMul + lcgAdd
					reader.Lock()
					o, err := r.Obtain(handles[x>>33%n])
					switch {
					case err != nil || lock && o.Lock() != nil:
						b.Error(err)
					case lock:
						o.Unlock()
					}
					reader.Unlock()
				}
			})
		})
	}
	b.Run("impl=RWMutex+map/lock=true", func(b *testing.B) {
		type locked struct {
			mu sync.Mutex
			v  *object
		}
		var mu sync.RWMutex
		m := make(map[uint64]*locked)
		for i := range uint64(n) {
			m[i] = &locked{v: &objects()[i]}
		}
		var at atomic.Uint64
		b.ReportAllocs()
		b.RunParallel(func(pb *testing.PB) {
			for x := at.Add(1) << 40; pb.Next(); {
				x = x*lcgMul + lcgAdd
				mu.RLock()
				o := m[x>>33%n]
				o.mu.Lock()
				mu.RUnlock()
				o.mu.Unlock()
			}
		})
	})
}

// BenchmarkRegistryAddRemove is the way of an object through a Registry, with its release.
func BenchmarkRegistryAddRemove(b *testing.B) {
	d := rcu.New()
	r := idr.NewRegistry(d, func(*object) {})
	b.ReportAllocs()
	for b.Loop() {
		h, err := r.Add(&objects()[0])
		if err != nil || r.Remove(h) != nil {
			b.Fatal(h, err)
		}
	}
	b.StopTimer()
	if err := d.Close(b.Context()); err != nil {
		b.Fatal(err)
	}
}

// BenchmarkIDA has ids come and go, and asks for them. The rival in taking and giving back is a Pool
// that has ids from an IDA, a batch at a time: see docs/decisions/0003-no-id-cache-in-idr.md.
func BenchmarkIDA(b *testing.B) {
	const n = 1 << 16
	var a idr.IDA
	if _, err := a.AllocN(n, 0, n-1); err != nil {
		b.Fatal(err)
	}
	b.Run("op=FreeAlloc", func(b *testing.B) { // any of 64k, which are all taken
		b.ReportAllocs()
		x := uint64(1)
		for b.Loop() {
			x = x*lcgMul + lcgAdd
			a.Free(int(x >> 33 % n))
			if _, err := a.Alloc(); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("op=Contains", func(b *testing.B) {
		b.ReportAllocs()
		x := uint64(1)
		for b.Loop() {
			x = x*lcgMul + lcgAdd
			if !a.Contains(int(x >> 33 % n)) {
				b.Fatal(x)
			}
		}
	})
	for _, hold := range []int{1, 16} {
		bench := func(name string, get func() int, put func(id int)) {
			b.Run(fmt.Sprintf("op=AllocFree/impl=%s/hold=%d", name, hold), func(b *testing.B) {
				b.ReportAllocs()
				b.RunParallel(func(pb *testing.PB) {
					var ids [16]int
					for pb.Next() {
						for i := range hold {
							ids[i] = get()
						}
						for i := range hold {
							put(ids[i])
						}
					}
				})
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*hold), "ns/id")
			})
		}
		bench("ida", func() int { id, _ := a.Alloc(); return id }, func(id int) { a.Free(id) })
		var cache percpu.Pool[int]
		cache.New = func() int {
			batch, err := a.AllocN(16, 0, math.MaxInt)
			if err != nil {
				panic(err)
			}
			for _, id := range batch[1:] {
				cache.Put(id)
			}
			return batch[0]
		}
		bench("pool", cache.Get, cache.Put)
	}
}
