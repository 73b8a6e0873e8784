package percpu

import (
	"iter"
	"sync"

	"github.com/quiesce-go/quiesce/asm"
)

// A Ring is a trace buffer for each CPU, in the shape of LTTng's: a writer
// puts a record with a time into the buffer of its own CPU and never waits, a
// reader takes the records of all CPUs out again, in the order of their times.
// What does not fit, because the reader is behind, is dropped and counted.
//
//	for record := range ring.Records() {
//		fmt.Println(record.Time, record.CPU, record.Event, record.Payload)
//	}
//
// Rings are made by NewRing, may be written and read by any number of goroutines
// at once, and must not be copied. Their memory is not on the Go heap, and goes
// back to the system when the Ring is unreachable. A CPU that writes nothing
// takes address space only. Threads that fall back from a tier (see package asm)
// have buffers of their own, of the same size.
//
// The buffers are those of asm.Log, which says how a record gets into one.
type Ring struct {
	log asm.Log
	_   [128]byte // what writers read is not where readers store

	// mu is for readers: who has it may take the records out. It is not held
	// while a loop's body runs.
	mu sync.Mutex
}

// A Record is what one Write wrote.
type Record struct {
	// Time is what asm.Cycles returned when the record was written, or the Time
	// of the record before it where that is later: processors may disagree about
	// it by a little. asm.CyclesPerSecond tells how long a cycle is.
	Time    uint64
	CPU     int // on which it was written; where restartable sequences do not work, the P's number or a guess
	Event   uint32
	Payload []byte // the caller's to keep
}

// NewRing returns a Ring of bytesPerCPU bytes, rounded up to a power of two, for
// each CPU. A record takes 16 bytes and its payload, rounded up to 8. NewRing
// panics if bytesPerCPU is not above 0 or is above 1 GiB (16 MiB on 32-bit
// machines), or if the address space is not there.
func NewRing(bytesPerCPU int) *Ring {
	if bytesPerCPU < 1 || bytesPerCPU > asm.MaxLog {
		panic("percpu: NewRing of a size that is not above 0, or above 1 GiB (16 MiB on 32-bit machines)")
	}
	r := new(Ring)
	r.log.Make(bytesPerCPU)
	return r
}

// Write records an event with a copy of payload, and the time. It returns false
// if that did not fit into what this CPU's buffer has left, and counts it as
// dropped; a record that is larger than the buffer never fits.
//
// A Write synchronizes before the loop's body that gets its record. It does not
// allocate, and compiles to one call of the assembly, which takes a few
// nanoseconds more than reading the cycle counter does. It does not wait, except in
// the shared tier, for a lock that is held for as long as it takes to copy a
// payload; payloads of more than 64 KiB always go there.
func (r *Ring) Write(event uint32, payload []byte) bool { return r.log.Write(event, payload) }

// Dropped returns how many Writes have returned false.
func (r *Ring) Dropped() uint64 { return r.log.Dropped() }

// Records returns an iterator that takes records out of the Ring. Each loop over
// it gets those that were written when it began and that no other loop takes,
// in the order of their times, and ends. Each record comes in one loop only, and a
// record's room is free as soon as it has come. A loop that is left early leaves
// the rest in the Ring.
//
// The body may use the Ring, also to write and to loop over it. A step takes a
// lock, which writers never do, and copies the payload to memory that it allocates
// for many at once. It costs O(log n) for n CPUs with records.
func (r *Ring) Records() iter.Seq[Record] {
	return func(yield func(Record) bool) {
		m := r.merge()
		for record, ok := m.next(); ok; record, ok = m.next() {
			if !yield(record) {
				return
			}
		}
	}
}

// A merge is a loop over the records of a Ring. Others may take records at the
// same time.
type merge struct {
	ring *Ring
	rest []cursor // of columns in which the loop has records left; a heap, the earliest first
	last uint64   // the time of the last record
	slab []byte   // for payloads
	size int      // how much more the payloads may take, at most
}

// A cursor is where a merge is in a column.
type cursor struct {
	time uint64 // of the record at
	at   uint64 // the oldest record, when the merge looked last
	end  uint64 // behind the last one of this loop
	col  int
}

// merge returns a loop over what is in r now. Where it ends in each column is
// settled before the first record is taken, so that none can come after a later
// one; records may be written meanwhile that are earlier than its last.
func (r *Ring) merge() *merge {
	m := &merge{ring: r}
	r.mu.Lock()
	defer r.mu.Unlock()
	for col := range r.log.Columns() {
		if at, end := r.log.Start(col), r.log.End(col); at != end {
			m.rest = append(m.rest, cursor{at: at, end: end, col: col})
			m.size += int(end-at) * 8
		}
	}
	for i := range m.rest {
		m.rest[i].time = r.time(m.rest[i])
	}
	for i := len(m.rest)/2 - 1; i >= 0; i-- {
		m.down(i)
	}
	return m
}

// time returns the time of the record at c.
func (r *Ring) time(c cursor) uint64 {
	t, _, _, _ := r.log.Record(c.col, c.at)
	return t
}

// next takes a record out of the Ring, false if there are none left for this loop.
func (m *merge) next() (Record, bool) {
	r := m.ring
	r.mu.Lock()
	defer r.mu.Unlock()
	for len(m.rest) > 0 {
		c := &m.rest[0]
		if at := r.log.Start(c.col); at != c.at {
			m.move(at) // by another loop
			continue
		}
		time, event, size, next := r.log.Record(c.col, c.at)
		record := Record{
			Time:    max(time, m.last),
			CPU:     c.col % asm.Columns(),
			Event:   event,
			Payload: m.payload(size),
		}
		m.last = record.Time
		r.log.Payload(c.col, c.at, record.Payload)
		r.log.Free(c.col, next)
		m.move(next)
		return record, true
	}
	return Record{}, false
}

// move has the first cursor go on at a record. The Ring's lock is held.
func (m *merge) move(at uint64) {
	c := &m.rest[0]
	if c.at = at; at < c.end {
		c.time = m.ring.time(*c)
	} else {
		last := len(m.rest) - 1
		m.rest[0] = m.rest[last]
		m.rest = m.rest[:last]
	}
	m.down(0)
}

// down puts cursor i where it belongs among those behind it in the heap.
func (m *merge) down(i int) {
	for {
		first := i
		for child := 2*i + 1; child <= 2*i+2 && child < len(m.rest); child++ {
			if m.rest[child].time < m.rest[first].time {
				first = child
			}
		}
		if first == i {
			return
		}
		m.rest[i], m.rest[first] = m.rest[first], m.rest[i]
		i = first
	}
}

// payload returns n bytes of memory.
func (m *merge) payload(n int) []byte {
	const slab = 16 << 10
	m.size -= n
	if n > len(m.slab) {
		if n > slab/4 {
			return make([]byte, n)
		}
		m.slab = make([]byte, min(slab, n+m.size))
	}
	p := m.slab[:n:n]
	m.slab = m.slab[n:]
	return p
}
