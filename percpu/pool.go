package percpu

import (
	"math"
	"math/bits"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/quiesce-go/quiesce/asm"
	"github.com/quiesce-go/quiesce/internal/pin"
)

// A Pool keeps objects that are not in use, for whoever needs one next. Every P has
// a stack of them, so that Get mostly returns what was put last where it runs, still
// in the cache; stacks that overflow or run empty exchange objects with a depot that
// all share.
//
// Unlike a sync.Pool it is never emptied by the garbage collector, it says how much
// it holds, and it gives everything back on demand. That makes it fit for objects
// that own something: memory off the heap, files, connections. It keeps its memory
// until it is drained.
//
// The zero Pool is ready. New and Cap must not be changed after the first Put or
// Get. A Pool may be used by any number of goroutines and must not be copied.
//
// A Put synchronizes before the Get, or the call of Drain's fn, that gets the same
// object.
//
// Get and Put take a few nanoseconds and do not allocate once the stacks exist. They
// take a mutex where a stack is empty or full, beside a Drain, and in builds that
// cannot pin a goroutine to its P (see package asm).
//
// Stacks and depot are those of Bonwick's magazine allocator and of tcmalloc. A
// stack belongs to a P and not to a CPU because objects with pointers can only be
// moved by Go code, and no restartable sequence can contain that.
type Pool[T any] struct {
	_ noCopy

	// New makes an object when Get finds none. If it is nil, Get returns a zero T.
	New func() T

	// Cap is how many objects the stack of a P holds; 0 means 64. The depot holds as
	// many for each CPU. A Put drops its object only when both are full, so never
	// while the Pool holds fewer than Cap objects.
	Cap int

	// open is the first of the stacks, or nil before the first Put and while a Drain looks
	// at them. It is loaded by pinned goroutines. Pairs with StopTheWorld in collect:
	// whoever is pinned after that finds nil.
	open  atomic.Pointer[poolStack[T]]
	procs int // how many stacks there are; stored before open, and then stays

	_ [128]byte

	// mu is held to use the depot. Whoever holds it may use his P's stack too, and
	// Drain, with open at nil, all of them.
	mu     sync.Mutex
	depot  []T
	pooled atomic.Int64   // len(depot), stored under mu. Orders nothing: who finds it above 0 takes mu
	limit  int            // what the depot may hold, once it is not 0
	stacks []poolStack[T] // by P, those beyond it have none; made with limit
}

const (
	defaultPoolCap = 64
	poolGrain      = 64
)

// poolStacks says whether this build has stacks: the race detector does not see that
// whoever is pinned is alone.
const poolStacks = pin.Works && !raceEnabled

// A poolStack belongs to the goroutine that is pinned to its P. Two of them are never
// in one pair of cache lines, which is what the processor fetches.
type poolStack[T any] struct {
	_     [0]atomic.Int64 // aligns n where words have 32 bits
	_     [112]byte
	n     int64 // how many objects there are. Every StoreRelease of it pairs with the load in Len
	items []T   // nil before the first Put here; items[n:] are zero, so that they keep nothing alive
	_     [112 + (64-bits.UintSize)/8*3]byte
}

// Get returns an object: the one that was put last on this P, or one that other Ps
// had too many of, or what New returns. A panic in New goes through to the caller.
func (p *Pool[T]) Get() (v T) {
	_ = p.Cap // A nil p panics here; while pinned, that would end the program.
	if poolStacks {
		id := pin.Pin() // No panic and no park until Unpin.
		if first := p.open.Load(); first != nil && id < p.procs {
			st := first.at(id)
			if n := st.n - 1; uint(n) < uint(len(st.items)) {
				var none T
				v, st.items[n] = st.items[n], none
				asm.StoreRelease(&st.n, n)
				pin.Unpin()
				return v
			}
		}
		pin.Unpin()
	}
	return p.getSlow()
}

// Put gives an object to the Pool. The caller must not use it any more. It panics if
// Cap is negative.
func (p *Pool[T]) Put(v T) {
	_ = p.Cap // As in Get.
	if poolStacks {
		id := pin.Pin() // No panic and no park until Unpin.
		if first := p.open.Load(); first != nil && id < p.procs {
			st := first.at(id)
			if n := st.n; uint(n) < uint(len(st.items)) {
				st.items[n] = v
				asm.StoreRelease(&st.n, n+1)
				pin.Unpin()
				return
			}
		}
		pin.Unpin()
	}
	p.putSlow(v)
}

// getSlow is Get from the depot, or from New.
func (p *Pool[T]) getSlow() (v T) {
	// With open at nil there may be no stacks, or a Drain: what counts is under mu.
	if p.pooled.Load() > 0 || p.open.Load() == nil {
		if v, ok := p.take(); ok {
			return v
		}
	}
	if p.New != nil {
		return p.New()
	}
	return v
}

// take takes an object from the depot, and half a stack full with it.
func (p *Pool[T]) take() (v T, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	last := len(p.depot) - 1
	if last < 0 {
		return v, false
	}
	v = p.depot[last]
	if poolStacks {
		if id := pin.Pin(); id < len(p.stacks) {
			if st := &p.stacks[id]; st.n == 0 && st.items != nil {
				n := copy(st.items, p.depot[max(0, last-half(st.items)):last])
				asm.StoreRelease(&st.n, int64(n))
				last -= n
			}
		}
		pin.Unpin()
	}
	clear(p.depot[last:])
	p.depot = p.depot[:last]
	p.pooled.Store(int64(last))
	return v, true
}

// putSlow is Put where there is no room in plain sight.
func (p *Pool[T]) putSlow(v T) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.limit == 0 {
		p.makeLocked()
	}
	if poolStacks && p.pushLocked(v) {
		return
	}
	if len(p.depot) < p.limit {
		p.depot = append(p.depot, v)
		p.pooled.Store(int64(len(p.depot)))
	}
}

// makeLocked makes the stacks, without memory for their objects. The caller holds mu.
func (p *Pool[T]) makeLocked() {
	if p.Cap < 0 {
		panic("percpu: Put to a Pool with a negative Cap")
	}
	p.limit = math.MaxInt
	if hi, n := bits.Mul64(uint64(p.cap()), uint64(asm.Columns())); hi == 0 && n < math.MaxInt {
		p.limit = int(n)
	}
	if poolStacks {
		p.stacks = make([]poolStack[T], asm.Columns())
		p.procs = len(p.stacks)
		p.open.Store(&p.stacks[0]) // Pairs with the loads in Get and Put, for stacks and procs.
	}
}

func (p *Pool[T]) cap() int {
	if p.Cap == 0 {
		return defaultPoolCap
	}
	return p.Cap
}

// pushLocked puts v on the stack of this P, and the older half of a full one in the
// depot. It reports false if there is no stack, or no room. The caller holds mu.
func (p *Pool[T]) pushLocked(v T) bool {
	// Nothing is allocated while pinned, so it is done before: a stack that has no room and
	// is not as high as it may be gets twice as much.
	var fresh []T
	if id := pin.Pin(); id < len(p.stacks) {
		st := &p.stacks[id]
		n, c := int(st.n), len(st.items)
		pin.Unpin()
		if n == c && c < p.cap() {
			fresh = make([]T, min(max(2*c, poolGrain), p.cap()))
		}
	} else {
		pin.Unpin()
	}
	room := min(p.limit-len(p.depot), (p.cap()-1)/2+1, poolGrain)
	p.depot = slices.Grow(p.depot, room)

	id := pin.Pin()
	defer pin.Unpin()
	if id >= len(p.stacks) {
		return false
	}
	st := &p.stacks[id] // of another P now, perhaps; what does not fit there is left to the next Put
	if len(fresh) > len(st.items) {
		copy(fresh, st.items)
		st.items = fresh
	}
	if len(st.items) == 0 {
		return false
	}
	n := int(st.n)
	if n == len(st.items) {
		k := min(room, half(st.items))
		if k == 0 {
			return false
		}
		p.depot = append(p.depot, st.items[:k]...)
		p.pooled.Store(int64(len(p.depot)))
		n = copy(st.items, st.items[k:])
		clear(st.items[n:])
	}
	st.items[n] = v
	asm.StoreRelease(&st.n, int64(n+1))
	return true
}

// half of a stack, but at most poolGrain objects, is what goes to or from the depot at
// once: while they move, the goroutine is pinned.
func half[T any](items []T) int { return min((len(items)+1)/2, poolGrain) }

// Len returns how many objects the Pool holds. Beside Put, Get and Drain it is a
// number that it may have held.
func (p *Pool[T]) Len() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := len(p.depot)
	for i := range p.stacks {
		n += int(atomic.LoadInt64(&p.stacks[i].n)) // Pairs with the StoreReleases.
	}
	return n
}

// Drain takes all objects out of the Pool, those of every P, calls fn with each if fn
// is not nil, and returns how many they were. It finds every object whose Put happens
// before it and that no Get took. It stops the world for a moment, and Get and Put
// wait while it collects. fn may use the Pool; if it panics, the objects that it has
// not seen are not in the Pool any more.
func (p *Pool[T]) Drain(fn func(T)) int {
	items := p.collect()
	if fn != nil {
		for _, v := range items {
			fn(v)
		}
	}
	return len(items)
}

func (p *Pool[T]) collect() []T {
	p.mu.Lock()
	defer p.mu.Unlock()
	items := p.depot
	p.depot = nil
	p.pooled.Store(0)
	if p.stacks == nil {
		return items
	}
	p.open.Store(nil)
	if mutant != mutantNoStop {
		asm.StopTheWorld() // Whoever had loaded open is not pinned any more. Pairs with Get and Put.
	}
	for i := range p.stacks {
		st := &p.stacks[i]
		items = append(items, st.items[:st.n]...)
		clear(st.items[:st.n])
		asm.StoreRelease(&st.n, 0)
	}
	p.open.Store(&p.stacks[0])
	return items
}
