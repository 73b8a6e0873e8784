package asm

// This file uses unsafe to find records in memory that is not the garbage
// collector's. It comes from chunk_*.go, holds no pointers, and goes back to the
// kernel with the Log.

import (
	"math/bits"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/quiesce-go/quiesce/internal/pin"
)

// A Log is a buffer of records in each column, in which a record becomes visible
// as a whole or not at all: a sequence reserves room behind the last record,
// copies the new one there, and commits it with its last instruction, which
// stores where the records end. One that is aborted leaves behind what the
// next one overwrites. It is the operation that percpu.Ring is made of.
//
// A column's buffer is a ring of 64-bit words. Positions in it only grow; a
// word's place is its position modulo the size. A record is
//
//	word 0      Cycles, read inside the sequence
//	word 1      event<<32 | bytes of payload
//	word 2...   payload, the last word filled up with anything
//
// Of the positions, only the writers of a column, one at a time, store its head,
// and only the reader stores its tail. Writers and reader never wait for each other.
//
// As a Block, a Log has columns of its own for each tier, and buffers too, which
// it takes when a tier is first used. A buffer's pages are touched first by the
// column's own CPU. The memory goes back when the Log is unreachable.
//
// A Log that Make has not made has no buffers: Write panics. Any number of
// goroutines may write. The other methods are for one reader at a time, and do not
// check their arguments. A Log must not be copied.
//
// The layout is that of LTTng's per-CPU buffers, without its sub-buffers.
type Log struct {
	// ends has, in each column, the words below. It comes first: the assembly
	// takes a Log for this Block.
	ends Block

	// What follows is read by the assembly. mask and stride are set by Make.
	mask    uint64                    // the number of words in a buffer, less 1
	stride  uint64                    // bytes from a column's buffer to the next one's
	buffers [tierCount]unsafe.Pointer // of column 0 in each tier; nil until makeBuffers, and then stays

	locks []logLock // of the writers of the shared tier's columns; made before its buffers
}

// A logLock is two cache lines away from the next one, because processors fetch
// lines in pairs.
type logLock struct {
	sync.Mutex
	_ [128 - unsafe.Sizeof(sync.Mutex{})]byte
}

// The words of a Log's Block.
const (
	// logHead is where the next record goes: stored by writers, last of all.
	logHead = 0
	// logSeen is a tail that a writer saw, so that most writers need not
	// fetch the reader's cache line. The tail only grows, so an old one, also one
	// that an aborted sequence left here, makes less room, never more.
	logSeen = 1
	// logDropped counts records that did not fit. It is added to outside of the
	// sequence, in whatever column: only its sum means anything.
	logDropped = 2
	// logTail is where the oldest record is: stored by the reader, two cache lines
	// behind what the writers store, because processors fetch lines in pairs.
	logTail = 16

	logWords = logTail + 1
)

const notMade = "asm: use of a Log that Make has not made (of a percpu.Ring that NewRing has not)"

const (
	recordHeader = 2 // words

	// MaxLog is the largest size that Make accepts. It leaves a Log of many
	// columns room in the address space.
	MaxLog = 1 << (24 + bits.UintSize/64*6)

	minLog = 32

	// logLongest bounds the payload that is copied inside a sequence, which the
	// kernel can have started again, or pinned; the Go scheduler waits for either. A
	// longer one is copied in the shared tier, under a lock.
	logLongest = 64 << 10
)

// Make gives l buffers of size bytes, rounded up to a power of two, in each
// column. It panics if size is not in [1, MaxLog] or if the address space is
// not there. It is called once, before anything else.
func (l *Log) Make(size int) {
	if size < 1 || size > MaxLog {
		panic("asm: Log.Make of a size outside [1, MaxLog]")
	}
	size = 1 << bits.Len(uint(max(size, minLog)-1))
	l.mask = uint64(size/8) - 1
	l.stride = uint64(max(size, os.Getpagesize()))
	l.ends.Alloc(logWords)
	if !l.makeBuffers(currentTier()) {
		panic("asm: no address space for a Log")
	}
}

// Write appends a record to the buffer of the caller's column and reports whether
// there was room; if there was not, it counts the record as dropped. It compiles
// to one call.
//
// It touches the words of the column, and those of its buffer from the last record on
// to the end of this one. Where a sequence cannot run, or is aborted 64 times in a row,
// it falls back as Block.Add does, to other columns, whose buffers are other ones.
//
// Ordering: what the caller did before is visible to a reader that finds the
// record by End.
//
// It does not wait, except, in the shared tier, for the lock of a column, which is held
// for a copy; payloads of more than 64 KiB always take that way. It does not allocate,
// but the first Write in a tier takes memory from the kernel.
func (l *Log) Write(event uint32, payload []byte) bool { return logWrite(l, event, payload) }

// logFull is where logWrite goes when the record does not fit.
func logFull(l *Log, _ uint32, _ []byte) bool {
	l.ends.Add(logDropped, 1)
	return false
}

// logSlow is where logWrite goes when a sequence cannot be used: for the reasons
// that blockAddSlow has, because the tier has no buffers yet, or because payload
// is long.
//
//lint:ignore U1000 the assembly jumps to it
func logSlow(l *Log, event uint32, payload []byte) bool {
	if l.stride == 0 {
		panic(notMade)
	}
	switch currentTier() { // Make has decided
	case tierRSEQ:
		if l.ready() {
			return logWrite(l, event, payload)
		}
	case tierPinned:
		if len(payload) > logLongest || !l.makeBuffers(tierPinned) {
			break
		}
		p := pin.Pin()
		if p < columns {
			ok := cells{l.ends.lease.Load(), tierPinned, p}.log(l, event, payload)
			pin.Unpin()
			return ok || logFull(l, event, payload)
		}
		pin.Unpin()
	}
	if !l.makeBuffers(tierShared) {
		return logFull(l, event, payload)
	}
	w := cells{l.ends.lease.Load(), tierShared, sharedColumn()}
	mu := &l.locks[w.c]
	mu.Lock()
	ok := w.log(l, event, payload)
	mu.Unlock()
	runtime.KeepAlive(w.l)
	return ok || logFull(l, event, payload)
}

// ready gives the rseq tier buffers and the thread an area, and reports whether
// one of the two was missing, so that a sequence is worth another try.
func (l *Log) ready() bool {
	fresh := atomic.LoadPointer(&l.buffers[tierRSEQ]) == nil && l.makeBuffers(tierRSEQ)
	return rseqThread() || fresh && rseqColumn() >= 0
}

// makeBuffers gives tier t buffers if it has none, and reports whether it has.
func (l *Log) makeBuffers(t int) bool {
	if atomic.LoadPointer(&l.buffers[t]) != nil {
		return true
	}
	pool.Lock()
	defer pool.Unlock()
	if l.buffers[t] != nil {
		return true
	}
	n := int(l.stride) * columns
	p, err := mapChunk(n)
	if err != nil {
		return false
	}
	type chunk struct {
		p unsafe.Pointer
		n int
	}
	// Whoever uses a buffer keeps the lease alive, as for the words.
	runtime.AddCleanup(l.ends.lease.Load(), func(c chunk) { unmapChunk(c.p, c.n) }, chunk{p, n})
	if t == tierShared {
		l.locks = make([]logLock, columns)
	}
	atomic.StorePointer(&l.buffers[t], p)
	return true
}

// recordWords returns the number of words of a record.
func recordWords(payload int) uint64 { return recordHeader + (uint64(payload)+7)/8 }

// log does what logWrite does. The caller is pinned or, in the shared tier, holds
// the column's lock, so that a column's writers come one at a time.
func (w cells) log(l *Log, event uint32, payload []byte) bool {
	head := uint64(w.load(logHead))
	end := head + recordWords(len(payload))
	if end-uint64(w.load(logSeen)) > l.mask+1 {
		// What the reader copied out, it copied before. Pairs with Free.
		tail := w.load(logTail)
		w.release(logSeen, tail)
		if end-uint64(tail) > l.mask+1 {
			return false
		}
	}
	b := l.buffer(w.t, w.c)
	*b.word(head) = cycles()
	*b.word(head + 1) = uint64(event)<<32 | uint64(len(payload))
	first, second := b.bytes(head+recordHeader, len(payload))
	copy(first, payload)
	if second != nil {
		copy(second, payload[len(first):])
	}
	// Nobody reads the record before it sees this. Pairs with End.
	w.release(logHead, int64(end))
	return true
}

// release stores v in a word that only the caller stores to, whatever the tier.
func (w cells) release(i int, v int64) {
	if raceEnabled {
		w.store(i, v)
	} else {
		StoreRelease(w.l.word(w.t, w.c, i), v)
	}
}

// A buffer is one column's.
type buffer struct {
	base unsafe.Pointer
	mask uint64
}

func (l *Log) buffer(t, c int) buffer {
	return buffer{unsafe.Add(atomic.LoadPointer(&l.buffers[t]), uintptr(c)*uintptr(l.stride)), l.mask}
}

// word returns the word at a position.
func (b buffer) word(at uint64) *uint64 { return (*uint64)(unsafe.Add(b.base, (at&b.mask)*8)) }

// bytes returns the n bytes from a position on, in two pieces if they are on both
// sides of the buffer's end.
func (b buffer) bytes(at uint64, n int) (first, second []byte) {
	start := int(at&b.mask) * 8
	all := unsafe.Slice((*byte)(b.base), int(b.mask+1)*8)
	if size := len(all); start+n > size {
		return all[start:], all[:start+n-size]
	}
	return all[start : start+n], nil
}

// Columns returns the number of columns in which there may be records. Column col
// is that of the CPU, or P, number col modulo asm.Columns.
func (l *Log) Columns() int { return tierCount * columns }

// End returns the position behind the last record in column col now. What the
// writers of the records before it did before their Writes is visible.
func (l *Log) End(col int) uint64 {
	le := l.ends.lease.Load()
	if le == nil {
		panic(notMade)
	}
	// Pairs with the commit of logWrite and of cells.log.
	end := atomic.LoadInt64(le.word(0, col, logHead))
	if c := col - tierShared*columns; raceEnabled && c >= 0 && end != 0 {
		// The race detector does not see words that are not on the heap, and would
		// not know of the order that they make. It sees the lock.
		l.locks[c].Lock()
		l.locks[c].Unlock()
	}
	runtime.KeepAlive(le)
	return uint64(end)
}

// Start returns the position of the oldest record in column col, which is End's if
// there is none.
func (l *Log) Start(col int) uint64 {
	le := l.ends.lease.Load()
	if le == nil {
		panic(notMade)
	}
	start := atomic.LoadInt64(le.word(0, col, logTail))
	runtime.KeepAlive(le)
	return uint64(start)
}

// Record returns what the record at a position from Start to End says, and the
// position behind it.
func (l *Log) Record(col int, at uint64) (time uint64, event uint32, size int, next uint64) {
	b := l.buffer(col/columns, col%columns)
	time = *b.word(at)
	w := *b.word(at + 1)
	runtime.KeepAlive(l.ends.lease.Load())
	size = int(uint32(w))
	return time, uint32(w >> 32), size, at + recordWords(size)
}

// Payload copies the first len(dst) bytes of the payload of the record at a
// position.
func (l *Log) Payload(col int, at uint64, dst []byte) {
	b := l.buffer(col/columns, col%columns)
	first, second := b.bytes(at+recordHeader, len(dst))
	copy(dst[copy(dst, first):], second)
	runtime.KeepAlive(l.ends.lease.Load())
}

// Free gives the room of the records before position to in column col back to the
// writers.
func (l *Log) Free(col int, to uint64) {
	le := l.ends.lease.Load()
	// A writer that sees it may overwrite what was read before. Pairs with the load
	// of the tail in logWrite and cells.log. The word is the reader's alone, in
	// whatever column it is.
	cells{le, col / columns, col % columns}.release(logTail, int64(to))
	runtime.KeepAlive(le)
}

// Dropped returns the number of records that were dropped.
func (l *Log) Dropped() uint64 { return uint64(l.ends.Sum(logDropped)) }
