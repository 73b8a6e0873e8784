package rcu

import (
	"runtime"
	"sync"
	"sync/atomic"
)

// A Reader is a handle for read sections, owned by one goroutine at a time. Its
// sections are the cheapest there are: Lock and Unlock are inlined and each stores
// one word. Make one with [Domain.NewReader], for instance per worker goroutine;
// handing it to another goroutine needs the synchronization that any plain value
// needs. The zero Reader and a copy cannot be used.
//
// A section may block, sleep and change threads. Sections of one Reader nest: the
// outermost Lock and Unlock count.
//
// Ordering is that of the package comment. The design is that of the memory
// barrier flavour of userspace RCU (Desnoyers, McKenney and others, "User-Level
// Implementations of Read-Copy Update", 2012), with a 64-bit number in place of a
// phase bit, so that one scan is enough.
type Reader struct {
	_ noCopy

	// rec is own where the fast paths may be used, else slowRecord.
	rec *record
	// number is d's.
	number *uint64

	d       *Domain
	own     *record // nil after Close
	cleanup runtime.Cleanup
}

// A record is the part of a Reader that updaters look at. It does not refer to its
// handle, so that a handle that nobody holds can be collected. It has a line of its
// own, which its owner writes.
type record struct {
	// seen is the Domain's number as of the outermost Lock, 0 when there is no
	// section. Only the owner stores it. It must be first: 64-bit alignment.
	seen uint64

	// hold, if it is not 0, keeps Unlock from its fast path, which asks whether seen is above
	// it: holdNested while the owner has to count, holdHurry when a grace period waits for this
	// Reader and for a processor. Atomic, but which of the two it is does not matter to safety.
	hold uint64

	depth int // the owner's Locks without Unlock, the outermost not counted

	next *record // in readers.all; set before the record is there

	// stack is where the handle was made. Written when the record gets a handle, atomically, since
	// stallLocked may be reading it.
	stack [recordStack]uintptr
}

// setCreated notes the stack of the caller's caller.
func (rec *record) setCreated() {
	var pcs [recordStack]uintptr
	runtime.Callers(3, pcs[:])
	for i, pc := range pcs {
		atomic.StoreUintptr(&rec.stack[i], pc)
	}
}

// created returns where the handle was made.
func (rec *record) created() []uintptr {
	pcs := make([]uintptr, recordStack)
	for i := range pcs {
		pcs[i] = atomic.LoadUintptr(&rec.stack[i])
	}
	return pcs
}

const (
	wordSize    = 4 << (^uintptr(0) >> 63)
	recordSize  = 64
	recordStack = (recordSize-16)/wordSize - 2

	holdHurry  = 1<<64 - 1
	holdNested = 1<<64 - 2
)

// slowRecord sends Lock and Unlock to their slow paths. Nothing writes to it.
var slowRecord = &record{seen: 1, hold: holdNested}

// readers is the set of records of a Domain: a list that only grows, so that it
// can be walked without a lock, and the records in it that no handle uses.
type readers struct {
	all  atomic.Pointer[record]
	open atomic.Int64 // handles not closed
	mu   sync.Mutex   // protects free. Nobody waits for readers while holding it.
	free []*record    // in all, without a handle
}

// NewReader returns a new Reader of d. It never waits for a grace period, and
// allocates unless a record of a closed Reader can be used again. It costs about a
// microsecond. It panics if d is closed.
//
// A Reader that is no longer referenced is closed by the garbage collector. If it
// held a section, that is logged with the stack that made the Reader, and the section
// counts as ended: keep the Reader reachable while you use what it protects, which an
// Unlock that follows does.
func (d *Domain) NewReader() *Reader {
	d.mustBeMade()
	d.mustBeOpen("NewReader")
	if mutant == mutantLockedRegister {
		d.role[0].acquire()
		defer d.role[0].release()
	}
	rec := d.readers.take()
	atomic.StoreUint64(&rec.hold, 0)
	rec.depth = 0
	rec.setCreated()
	d.debug.created(rec)
	d.readers.open.Add(1)
	r := &Reader{rec: rec, number: &d.number, d: d, own: rec}
	if d.slowReaders {
		r.rec = slowRecord
	}
	r.cleanup = runtime.AddCleanup(r, d.dropped, rec)
	return r
}

func (rs *readers) take() *record {
	rs.mu.Lock()
	if n := len(rs.free); n > 0 {
		rec := rs.free[n-1]
		rs.free = rs.free[:n-1]
		rs.mu.Unlock()
		return rec
	}
	rs.mu.Unlock()
	rec := new(record)
	for {
		rec.next = rs.all.Load()
		// Pairs with the load in beginLocked: a record is in the list before its first
		// section is announced in it.
		if rs.all.CompareAndSwap(rec.next, rec) {
			return rec
		}
	}
}

func (rs *readers) put(rec *record) {
	rs.open.Add(-1)
	rs.mu.Lock()
	rs.free = append(rs.free, rec)
	rs.mu.Unlock()
}

// dropped is the cleanup of a handle that was not closed.
func (d *Domain) dropped(rec *record) {
	inside := atomic.LoadUint64(&rec.seen) != 0
	sec := StalledSection{}
	if inside {
		sec.Created = formatStack(rec.created())
		d.debug.describe(rec, &sec, make(stackTexts))
		if mutant != mutantNoReclaim {
			rec.show(0)
		}
	}
	d.debug.closed(rec)
	if !inside {
		d.readers.put(rec)
		return
	}
	// The record is not used again. Unlock's last use of its handle is before its store to the record: if
	// the handle could be collected in between, that store would end a section of the record's next Reader.
	d.readers.open.Add(-1)
	// Last of all: the handler of the log may use the Domain, and even wait for it.
	attrs := []any{"created", sec.Created}
	if sec.Began != "" {
		attrs = append(attrs, "began", sec.Began)
	}
	d.logger().Error("rcu: a Reader was dropped inside a section; the section counts as ended", attrs...)
}

// Lock begins a section. In a section it only counts, and the section lasts until
// each Lock has its Unlock. It costs about half a nanosecond, never blocks and does
// not allocate. It panics if r is closed.
func (r *Reader) Lock() {
	if r.rec.seen != 0 {
		r.lockSlow()
	} else {
		// Pairs with the scan in beginLocked, through the Fence there: of the two, this
		// thread's loads after the store see what was unpublished, or the scan sees
		// the store. The load pairs with the Add in beginLocked: a section that shows a
		// grace period's number sees everything from before it began.
		r.rec.show(atomic.LoadUint64(r.number))
	}
}

// Unlock ends the section that the last Lock began. What r's owner did in the section
// is ordered before the end of every grace period that waited for it. It costs about half
// a nanosecond. It panics if r holds no section or is closed.
func (r *Reader) Unlock() {
	if r.rec.seen <= atomic.LoadUint64(&r.rec.hold) {
		r.unlockSlow()
	} else {
		r.rec.show(0) // Pairs with the load in passed.
	}
}

// lockSlow is Lock in a section, in a Reader that has to use fences, hooks or a debugger, and in
// a closed one.
//
//go:noinline
func (r *Reader) lockSlow() {
	rec, d := r.own, r.d
	if rec == nil {
		panic("rcu: Lock of a closed Reader")
	}
	if rec.seen != 0 { // Nested: the outermost section's number stays.
		rec.depth++
		if atomic.LoadUint64(&rec.hold) == 0 {
			atomic.StoreUint64(&rec.hold, holdNested)
		}
		if mutant != mutantNestRefresh {
			return
		}
	}
	n := atomic.LoadUint64(r.number)
	d.hook(hookLoaded)
	d.debug.begin(rec)
	r.announce(n)
}

// announce publishes that a section began when the number was n.
func (r *Reader) announce(n uint64) {
	if r.d.fenced {
		// Nobody else can fence for this thread. Pairs with the Add in beginLocked.
		atomic.SwapUint64(&r.own.seen, n)
		return
	}
	r.own.show(n)
}

// unlockSlow is to Unlock what lockSlow is to Lock.
//
//go:noinline
func (r *Reader) unlockSlow() {
	rec := r.mustHold("Unlock")
	if rec.depth > 0 {
		rec.depth--
		return
	}
	rec.show(0) // Pairs with the load in passed.
	r.d.debug.end(rec)
	hurry := atomic.LoadUint64(&rec.hold) == holdHurry
	atomic.StoreUint64(&rec.hold, 0)
	if hurry {
		r.d.makeWay()
	}
}

// mustHold returns r's record, which shows a section.
func (r *Reader) mustHold(what string) *record {
	r.mustBeMade(what)
	switch {
	case r.own == nil:
		panic("rcu: " + what + " of a closed Reader")
	case r.own.seen == 0:
		panic("rcu: " + what + " of a Reader that holds no section")
	}
	return r.own
}

// mustBeMade panics in the zero Reader, whose Lock and Unlock have no place for a look: they fault.
func (r *Reader) mustBeMade(what string) {
	if r.d == nil {
		panic("rcu: " + what + " of a Reader that was not made by NewReader")
	}
}

// Refresh ends the section and begins another: grace periods no longer wait for what
// was read before it. Pointers loaded before must not be used after it. In a nested
// section it does nothing, since the outer one goes on. It panics if r holds no section
// or is closed.
func (r *Reader) Refresh() {
	if r.mustHold("Refresh").depth == 0 {
		// To whoever waits for the old section, this store is an Unlock. To others, it
		// is a Lock.
		r.d.debug.begin(r.own)
		r.announce(atomic.LoadUint64(r.number))
	}
}

// Close gives what r holds of its Domain back. It panics if r holds a section. A second
// Close does nothing, every other call after it panics.
func (r *Reader) Close() {
	r.mustBeMade("Close")
	rec := r.own
	if rec == nil {
		return
	}
	if rec.seen != 0 {
		panic("rcu: Close of a Reader that holds a section")
	}
	r.cleanup.Stop()
	r.rec, r.own = slowRecord, nil
	r.d.debug.closed(rec)
	r.d.readers.put(rec)
	runtime.KeepAlive(r)
}
