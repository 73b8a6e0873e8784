package asm

// This file uses unsafe to find a word of per-CPU memory by its column. The
// memory comes from memory_*.go, is never given back to the kernel and holds no
// pointers.

import (
	"math/bits"
	"runtime"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/quiesce-go/quiesce/internal/pin"
)

// MaxWords is the largest number of words a Block can have.
const MaxWords = columnBytes / 8

// A Block is a run of 64-bit words of per-CPU memory: every column has a copy
// of the run, and an operation works on the copy in its own column. A column
// belongs to a CPU, a P, or a hash, depending on the tier (see the package
// comment); [Columns] of them belong to a tier.
//
// The zero Block has no memory; Alloc gives it some, and so does the first Add,
// one word. The memory is outside the Go heap and holds no pointers. It returns
// to the process's pool when the Block is no longer reachable. A Block may be
// used by any number of goroutines and must not be copied.
//
// Word indexes are not checked: an index at or above the number of words
// touches another Block's words or faults. Package percpu has checked ones.
//
// The layout is that of tcmalloc's and librseq's per-CPU areas.
type Block struct {
	_ noCopy

	// base is the address of the first word in column 0 of the rseq tier, nil
	// before Alloc and while diverted. Sequences load it inside, everything else
	// atomically; it is stored after lease. An operation that finds nil takes
	// the slow path, which is why diverting costs others nothing.
	base unsafe.Pointer

	// lease, once set, stays.
	lease atomic.Pointer[lease]
}

// A lease is the part of a Block that does not change. The pool takes the words
// back when it is unreachable, so whoever gets a word's address from it keeps it
// alive until the word was used (a sequence and a pin do: the garbage collector
// cannot finish while they run).
type lease struct {
	base   unsafe.Pointer
	divert atomic.Pointer[func(i int, delta int64)]
	mu     sync.Mutex // for operations that change two words of the shared tier
	class  int        // there are 1<<class words
}

// Alloc gives b n words, all zero, at a multiple of n words rounded up to a
// power of two, or of a page if that is less, so that up to eight words never
// straddle a cache line. It does nothing if b has that many words already. It
// panics if n is not in [1, MaxWords], or if b has fewer, which cannot be
// extended. It takes a lock, and memory from the kernel once for every 8192
// words.
func (b *Block) Alloc(n int) { b.alloc(n, false, release) }

// alloc is Alloc that can leave the Block as it is while diverted. gone is called when nobody can reach the words by
// the Block any more.
func (b *Block) alloc(n int, shut bool, gone func(run)) {
	if n < 1 || n > MaxWords {
		panic("asm: Block.Alloc of a number of words outside [1, MaxWords]")
	}
	decide()
	pool.Lock()
	defer pool.Unlock()
	class := bits.Len(uint(n - 1))
	if l := b.lease.Load(); l != nil {
		if l.class < class {
			panic("asm: Block.Alloc of a Block that has fewer words already")
		}
		return
	}
	base := pool.takeLocked(class)
	l := &lease{base: base, class: class}
	runtime.AddCleanup(l, gone, run{base, class})
	b.lease.Store(l)
	if !shut {
		atomic.StorePointer(&b.base, base)
	}
}

// Add adds delta to word i in the caller's column. It compiles to one call.
//
// Ordering: none in the rseq and pinned tiers beyond what a plain store has, a
// store-release on arm64; whoever calls Fence and then Sum sees every Add that
// preceded the Fence on its thread, and everything that follows an Add it did
// not see sees what was written before the Fence. In the shared tier it is an
// atomic add.
//
// Cost: 2 to 3 ns in the rseq tier. It never blocks and does not allocate,
// except on the zero Block.
func (b *Block) Add(i int, delta int64) { blockAdd(b, i, delta) }

// AddShared adds delta to word i in a column of the shared tier, by an atomic
// add: a full barrier, on every tier, without the help of Fence.
func (b *Block) AddShared(i int, delta int64) {
	b.words().addShared(i, delta)
}

// Sum returns the sum of word i over all columns. It counts every Add that
// happens before it, and each Add that runs beside it is counted or not. Words
// are loaded atomically, in the order of the columns. It costs a cache miss
// for each column written since the last Sum and does not allocate.
func (b *Block) Sum(i int) int64 {
	l := b.lease.Load()
	if l == nil {
		return 0
	}
	// A thread that is about to use a tier for the first time marks it
	// before its Add. Pairs with markUsed.
	used := tiersUsed.Load()
	var sum int64
	for t := range tierCount {
		if used&(1<<t) == 0 {
			continue
		}
		for c := range columns {
			sum += atomic.LoadInt64(l.word(t, c, i))
		}
	}
	runtime.KeepAlive(l)
	return sum
}

// Column returns the column that an Add of the caller would use now: the
// caller's CPU number in the rseq tier, its P's in the pinned tier. Columns
// from Columns() on belong to threads that fall back; ColumnCount bounds them.
func Column() int {
	if c := rseqColumn(); c >= 0 {
		return c
	}
	return columnSlow()
}

// columnSlow is Column for a thread without an area, and for the other tiers.
func columnSlow() int {
	decide()
	switch currentTier() {
	case tierRSEQ:
		c := rseqColumn()
		if c < 0 && rseqThread() {
			c = rseqColumn()
		}
		if c >= 0 {
			return c
		}
	case tierPinned:
		p := pin.Pin()
		pin.Unpin()
		if p < columns {
			return p
		}
	default: // the shared tier's own columns are the first ones
		return sharedColumn()
	}
	return columns + sharedColumn()
}

// ColumnCount returns the number of values that Column can have: twice Columns.
func ColumnCount() int { return 2 * columns }

// Columns returns the number of columns of one tier, which is the number of
// CPUs that the kernel may ever bring up.
func Columns() int { return columns }

// Load returns word i of column col, by an atomic load.
func (b *Block) Load(col, i int) int64 {
	l := b.words()
	v := atomic.LoadInt64(l.column(currentTier(), col, i))
	runtime.KeepAlive(l)
	return v
}

// Divert makes every Add that begins after it call f instead, nil ends that.
// Sum, Load and AddShared keep working on the words. It switches a hot path off
// without a check in it.
func (b *Block) Divert(f func(i int, delta int64)) {
	l := b.words()
	pool.Lock() // so that Alloc, which stores base last, is over
	defer pool.Unlock()
	if f == nil {
		l.divert.Store(nil)
		atomic.StorePointer(&b.base, l.base)
		return
	}
	l.divert.Store(&f)
	atomic.StorePointer(&b.base, nil)
}

// words returns b's lease, after allocating one word if b has none.
func (b *Block) words() *lease {
	l := b.lease.Load()
	if l == nil {
		b.Alloc(1)
		l = b.lease.Load()
	}
	return l
}

// blockAddSlow is where blockAdd goes when a sequence cannot be used: the Block
// is zero or diverted, the thread is not registered, the tier is another, the
// kernel's CPU number is out of range, or the sequence was aborted too often.
//
//lint:ignore U1000 the assembly jumps to it
func blockAddSlow(b *Block, i int, delta int64) {
	decide()
	again := b.lease.Load() == nil
	l := b.words()
	if f := l.divert.Load(); f != nil {
		(*f)(i, delta)
		return
	}
	switch currentTier() {
	case tierRSEQ:
		// Each of the two reasons to try again happens once, to a Block and
		// to a thread, so this ends.
		if rseqThread() || again {
			blockAdd(b, i, delta)
			return
		}
	case tierPinned:
		p := pin.Pin()
		if p < columns {
			w := l.word(tierPinned, p, i)
			StoreRelease(w, *w+delta) // the P's own word: nobody else stores to it
			pin.Unpin()
			return
		}
		pin.Unpin()
	}
	l.addShared(i, delta)
}

func (l *lease) addShared(i int, delta int64) {
	markUsed(tierShared)
	atomic.AddInt64(l.word(tierShared, sharedColumn(), i), delta)
	runtime.KeepAlive(l)
}

// word returns word i of column c of tier t.
func (l *lease) word(t, c, i int) *int64 {
	return (*int64)(unsafe.Add(l.base, (t*columns+c)<<columnShift+i*8))
}

// lockAt returns the lock at word i of a slot. b, which the caller keeps reachable, keeps its words.
func (b *Block) lockAt(slot, i int) *Lock {
	return (*Lock)(unsafe.Pointer(b.words().word(0, slot, i)))
}

// column is word for a column number as Column returns it in tier t.
func (l *lease) column(t, col, i int) *int64 {
	switch {
	case col < columns:
		return l.word(t, col, i)
	case t == tierShared: // which has no others: these are always 0
		return l.word(tierPinned, col-columns, i)
	}
	return l.word(tierShared, col-columns, i)
}

// StoreRelease stores v in a word that only the caller stores to. On amd64 every
// store is a release, and an atomic one would be locked.
func StoreRelease(w *int64, v int64) {
	if runtime.GOARCH == "amd64" {
		*w = v
	} else {
		atomic.StoreInt64(w, v)
	}
}

// noCopy lets go vet's copylocks check find copies.
type noCopy struct{}

func (*noCopy) Lock()   {}
func (*noCopy) Unlock() {}
