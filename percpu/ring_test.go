package percpu_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"iter"
	"math"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/quiesce-go/quiesce/asm"
	"github.com/quiesce-go/quiesce/internal/buildtest"
	"github.com/quiesce-go/quiesce/internal/patience"
	"github.com/quiesce-go/quiesce/internal/storm"
	"github.com/quiesce-go/quiesce/internal/tier"
	"github.com/quiesce-go/quiesce/percpu"
)

func TestNewRing(t *testing.T) {
	for _, n := range []int{0, -1, math.MinInt, 1<<30 + 1, math.MaxInt} {
		if p := panics(func() { percpu.NewRing(n) }); p == nil || !strings.Contains(fmt.Sprint(p), "percpu: NewRing") {
			t.Errorf("NewRing(%d): panic %v", n, p)
		}
	}
}

// payloadOf is what the tests write with an event: it tells which it is.
func payloadOf(event uint32, n int) []byte {
	p := make([]byte, n)
	for i := range p {
		p[i] = byte(event)*31 + byte(i)
	}
	return p
}

// TestRing_Payloads: payloads of every length come out as they went in, wherever
// in a buffer they are, and stay as they are when their room is used again.
func TestRing_Payloads(t *testing.T) {
	onTiers(t, func(t *testing.T) {
		r := percpu.NewRing(1000) // is 1024
		var kept []percpu.Record
		for range 50 {
			for n := uint32(0); n <= 100; n += 4 {
				for k := range uint32(4) {
					if !r.Write(n+k, payloadOf(n+k, int(n+k))) {
						t.Fatalf("%d bytes do not fit", n+k)
					}
				}
				before := len(kept)
				for rec := range r.Records() {
					kept = append(kept, rec)
				}
				if len(kept) != before+4 {
					t.Fatalf("%d records, want 4", len(kept)-before)
				}
			}
		}
		for _, rec := range kept {
			if want := payloadOf(rec.Event, int(rec.Event)); !bytes.Equal(rec.Payload, want) {
				t.Fatalf("event %d: %x, want %x", rec.Event, rec.Payload, want)
			}
			if rec.CPU < 0 || rec.CPU >= asm.Columns() {
				t.Fatalf("event %d on CPU %d", rec.Event, rec.CPU)
			}
			if cap(rec.Payload) != len(rec.Payload) {
				t.Fatalf("an append to a payload of %d bytes would write %d bytes of another", len(rec.Payload), cap(rec.Payload)-len(rec.Payload))
			}
		}
		if r.Dropped() != 0 {
			t.Errorf("%d dropped", r.Dropped())
		}
	})
}

// TestRing_Full: a record that does not fit is dropped, and so is one that never
// will; a loop makes room.
func TestRing_Full(t *testing.T) {
	onTiers(t, func(t *testing.T) {
		r := percpu.NewRing(4096)
		for i := range uint64(3) {
			if r.Write(1, make([]byte, 4081)) || r.Dropped() != i+1 {
				t.Fatalf("4081 bytes fit into 4096 with 16 more; %d dropped", r.Dropped())
			}
		}
		written := 0
		for r.Dropped() < 1000 {
			if r.Write(uint32(written), []byte("8 bytes.")) {
				written++
			}
		}
		if limit := 3 * 4096 / 24 * asm.Columns(); written < 4096/24 || written > limit {
			t.Errorf("%d records fit, want from %d to %d", written, 4096/24, limit)
		}
		read := 0
		for range r.Records() {
			read++
		}
		if read != written {
			t.Errorf("%d written, %d read", written, read)
		}
		if !r.Write(7, nil) || r.Dropped() != 1000 {
			t.Errorf("no room; %d dropped", r.Dropped())
		}
	})
}

// TestRing_Break: a loop that is left takes what it got and no more.
func TestRing_Break(t *testing.T) {
	onTiers(t, func(t *testing.T) {
		r := percpu.NewRing(1 << 16)
		for i := range uint32(1000) {
			r.Write(i, nil)
		}
		seen := map[uint32]bool{}
		loops := 0
		for len(seen) < 1000 && loops < 1000 {
			loops++
			n := 0
			func() {
				defer func() { _ = recover() }()
				for rec := range r.Records() {
					if seen[rec.Event] {
						t.Fatalf("%d came twice", rec.Event)
					}
					seen[rec.Event] = true
					if n++; n == 7 {
						if loops%2 == 0 {
							panic("the body panics")
						}
						break
					}
				}
			}()
		}
		if want := (1000 + 6) / 7; loops != want || len(seen) != 1000 {
			t.Errorf("%d loops for %d records, want %d", loops, len(seen), want)
		}
	})
}

// TestRing_Body: the body writes, and loops itself. What it writes is not for the
// loop that it belongs to.
func TestRing_Body(t *testing.T) {
	onTiers(t, func(t *testing.T) {
		r := percpu.NewRing(1 << 12)
		for i := range uint32(10) {
			r.Write(i, nil)
		}
		outer, inner, again := 0, 0, 0
		for rec := range r.Records() {
			outer++
			if rec.Event >= 100 {
				t.Fatal("a loop sees what its body wrote")
			}
			r.Write(100+rec.Event, nil)
			if outer == 4 {
				for range r.Records() { // takes the other 6, and the 4 that were written
					inner++
				}
			}
		}
		for range r.Records() {
			again++
		}
		if outer != 4 || inner != 10 || again != 0 {
			t.Errorf("%d, %d and %d records", outer, inner, again)
		}
		if all := r.Records(); all != nil { // a loop begins when it does
			r.Write(1, nil)
			n := 0
			for range all {
				n++
			}
			for range all {
				n++
			}
			if n != 1 {
				t.Errorf("%d records", n)
			}
		}
	})
}

// TestRing_Switch: what was written in one tier comes out with what was written in
// the others, in order.
func TestRing_Switch(t *testing.T) {
	_, undo := tier.Switch(tier.RSEQ)
	defer undo()
	r := percpu.NewRing(1 << 12)
	for i := range uint32(90) {
		tier.Switch([]tier.Tier{tier.RSEQ, tier.Pinned, tier.Shared}[i%3])
		r.Write(i, nil)
	}
	seen := map[uint32]bool{}
	last := uint64(0)
	for rec := range r.Records() {
		if rec.Time < last {
			t.Errorf("%+v after one with %d", rec, last)
		}
		seen[rec.Event], last = true, rec.Time
	}
	if len(seen) != 90 {
		t.Errorf("%d records", len(seen))
	}
}

func TestRing_NoAllocation(t *testing.T) {
	onTiers(t, func(t *testing.T) {
		r := percpu.NewRing(4096)
		r.Write(1, nil)
		if n := testing.AllocsPerRun(1000, func() { // most do not fit
			var p [20]byte
			r.Write(1, p[:])
		}); n != 0 {
			t.Errorf("%v allocations", n)
		}
	})
}

// A ring is a Ring or a mutant of it.
type ring interface {
	Write(event uint32, payload []byte) bool
	Records() iter.Seq[percpu.Record]
	Dropped() uint64
}

// hammerRing has goroutines, and threads that come and go, write n records while loops
// run side by side, some of which are left early, under a storm. It returns an error
// unless each record comes once, whole, and in time, and those that did not fit were
// counted.
func hammerRing(t *testing.T, r ring, n int) error {
	t.Helper()
	const goroutines, readers, fromThreads = 8, 2, 1 << 18
	n /= goroutines
	seen := make([]atomic.Int32, goroutines*n+fromThreads)
	var written, refused, threads, read atomic.Int64
	var over atomic.Bool
	failed := make(chan error, 1)
	fail := func(format string, args ...any) {
		select {
		case failed <- fmt.Errorf(format, args...):
		default: // there is one already
		}
	}
	one := func(id uint32) {
		var p [64]byte
		size := 4 + id%61
		binary.NativeEndian.PutUint32(p[:], ^id)
		for k := range p[4:size] {
			p[4+k] = byte(id) ^ byte(k)
		}
		if r.Write(id, p[:size]) {
			written.Add(1)
		} else {
			seen[id].Add(1)
			refused.Add(1)
			runtime.Gosched() // to the readers
		}
	}
	take := func(limit int) {
		taken, last := 0, uint64(0)
		for rec := range r.Records() {
			if rec.Time < last {
				fail("%d after %d", rec.Time, last)
			}
			last = rec.Time
			whole := int(rec.Event) < len(seen) && len(rec.Payload) == int(4+rec.Event%61) && binary.NativeEndian.Uint32(rec.Payload) == ^rec.Event
			for k := 4; whole && k < len(rec.Payload); k++ {
				whole = rec.Payload[k] == byte(rec.Event)^byte(k-4)
			}
			if !whole {
				fail("event %#x with %x", rec.Event, rec.Payload)
				return
			}
			if seen[rec.Event].Add(1) != 1 {
				fail("event %#x came twice, or although it did not fit", rec.Event)
			}
			read.Add(1)
			if taken++; taken == limit {
				return
			}
		}
	}
	stop := storm.Start(t, storm.Threads(func() {
		if id := threads.Add(1); id <= fromThreads {
			one(uint32(goroutines*n) + uint32(id) - 1)
		}
	}))
	var writers, loops sync.WaitGroup
	for g := range goroutines {
		writers.Go(func() {
			for i := range n {
				one(uint32(g*n + i))
				if i%1024 == 0 {
					runtime.Gosched()
				}
			}
		})
	}
	for k := range readers {
		loops.Go(func() {
			for !over.Load() && len(failed) == 0 {
				take(k * 100)
				runtime.Gosched()
			}
		})
	}
	writers.Wait()
	stop()
	over.Store(true)
	loops.Wait()
	take(0)
	for id := range seen[:goroutines*n] {
		if seen[id].Load() != 1 {
			fail("event %#x came %d times", id, seen[id].Load())
		}
	}
	if read.Load() != written.Load() || r.Dropped() != uint64(refused.Load()) {
		fail("%d written, %d read; %d did not fit, %d dropped", written.Load(), read.Load(), refused.Load(), r.Dropped())
	}
	t.Logf("%d written, %d did not fit", written.Load(), refused.Load())
	select {
	case err := <-failed:
		return err
	default:
		return nil
	}
}

func TestHammerRing(t *testing.T) {
	onTiers(t, func(t *testing.T) {
		if err := hammerRing(t, percpu.NewRing(1<<14), storm.Size(200_000)); err != nil {
			t.Error(err)
		}
	})
}

// A looseRing is a mutant of Ring: two loops may take the same record.
type looseRing struct{ asm.Log }

func (r *looseRing) Records() iter.Seq[percpu.Record] {
	return func(yield func(percpu.Record) bool) {
		last := uint64(0)
		for col := range r.Columns() {
			for at, end := r.Start(col), r.End(col); int64(end-at) > 0; {
				time, event, size, next := r.Record(col, at)
				last = max(last, time)
				p := make([]byte, max(0, min(size, 100))) // the record may be another's by now
				r.Payload(col, at, p)
				if event%64 == 0 {
					runtime.Gosched() // as the scheduler may do at any time
				}
				r.Free(col, next)
				at = next
				if !yield(percpu.Record{Time: last, CPU: col, Event: event, Payload: p}) {
					return
				}
			}
		}
	}
}

// An unsortedRing is a mutant of Ring: its records are not in the order of their times.
type unsortedRing struct{ *percpu.Ring }

func (r unsortedRing) Records() iter.Seq[percpu.Record] {
	return func(yield func(percpu.Record) bool) {
		for rec := range r.Ring.Records() {
			rec.Time ^= 1 << 10
			if !yield(rec) {
				return
			}
		}
	}
}

// TestMutantRing: the hammer finds what is wrong with the mutants.
func TestMutantRing(t *testing.T) {
	for name, mutant := range map[string]func() ring{
		"two take one": func() ring {
			r := new(looseRing)
			r.Make(1 << 14)
			return r
		},
		"times fall": func() ring { return unsortedRing{percpu.NewRing(1 << 14)} },
	} {
		t.Run(name, func(t *testing.T) {
			patience.Until(t, "a record is wrong", func() (any, bool) {
				err := hammerRing(t, mutant(), storm.Size(200_000))
				return err, err != nil
			})
		})
	}
}

// TestRing_Order: what the writer did before is visible to who gets the record. The
// race detector sees whether it is.
func TestRing_Order(t *testing.T) {
	r := percpu.NewRing(1 << 12)
	data := make([]int, storm.Size(20_000))
	var writer sync.WaitGroup
	writer.Go(func() {
		for i := range data {
			data[i] = i + 1
			for !r.Write(uint32(i), nil) {
				runtime.Gosched()
			}
		}
	})
	for n := 0; n < len(data); {
		for rec := range r.Records() {
			if got := data[rec.Event]; got != int(rec.Event)+1 {
				t.Errorf("event %d: %d", rec.Event, got)
			}
			n++
		}
		runtime.Gosched()
	}
	writer.Wait()
}

// TestRing_Compiled: Write is one call where it is used, to the assembly.
func TestRing_Compiled(t *testing.T) {
	buildtest.Inlined(t, ".", "(*Ring).Write")
}

// A trace of requests.
func ExampleRing() {
	const begin, end = 1, 2
	trace := percpu.NewRing(1 << 16)

	trace.Write(begin, []byte("GET /"))
	trace.Write(end, []byte("200"))
	trace.Write(begin, []byte("GET /favicon.ico"))

	for r := range trace.Records() { // from all CPUs, in the order of their times
		fmt.Printf("%d %s\n", r.Event, r.Payload)
	}
	fmt.Println(trace.Dropped(), "dropped")
	// Output:
	// 1 GET /
	// 2 200
	// 1 GET /favicon.ico
	// 0 dropped
}

// BenchmarkRing models a tracer's event: a record of 8 bytes with its time, beside
// a buffer of the same layout, and as large as all of the Ring's, behind a lock. A
// reader copies out what is in them before they are full, which is not counted.
func BenchmarkRing(b *testing.B) {
	const size = 1 << 16
	payload := binary.LittleEndian.AppendUint64(nil, 0x0123456789abcdef)
	for _, t := range tiers {
		b.Run("impl=ours/tier="+t.name, func(b *testing.B) {
			inTier(b, t.tier)
			r := percpu.NewRing(size)
			writes(b, func() bool { return r.Write(1, payload) }, func() {
				for range r.Records() {
				}
			})
			if r.Dropped() != 0 {
				b.Errorf("%d records did not fit", r.Dropped())
			}
		})
	}
	b.Run("impl=mutex-buffer", func(b *testing.B) {
		m := mutexBuffer{words: make([]uint64, size/8*runtime.NumCPU())}
		writes(b, func() bool { return m.write(1, payload) }, m.drain)
	})
}

// writes measures write in as many goroutines as GOMAXPROCS says, without the
// time that drain takes.
func writes(b *testing.B, write func() bool, drain func()) {
	b.ReportAllocs()
	var took atomic.Int64
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			start := time.Now()
			for range batch {
				write()
			}
			took.Add(int64(time.Since(start)))
			drain()
		}
	})
	b.ReportMetric(float64(took.Load())/float64(b.N)/batch/float64(runtime.GOMAXPROCS(0)), "ns/op")
}

// A mutexBuffer is what one would write without a Ring.
type mutexBuffer struct {
	sync.Mutex
	words      []uint64 // a power of two of them
	head, tail uint64
	dropped    uint64
}

func (m *mutexBuffer) write(event uint32, payload []byte) bool {
	m.Lock()
	defer m.Unlock()
	end := m.head + 2 + uint64(len(payload)+7)/8
	mask := uint64(len(m.words) - 1)
	if end-m.tail > mask+1 {
		m.dropped++
		return false
	}
	m.words[m.head&mask] = asm.Cycles()
	m.words[(m.head+1)&mask] = uint64(event)<<32 | uint64(len(payload))
	m.head += 2
	for len(payload) >= 8 {
		m.words[m.head&mask] = binary.NativeEndian.Uint64(payload)
		payload = payload[8:]
		m.head++
	}
	if len(payload) > 0 {
		var last [8]byte
		copy(last[:], payload)
		m.words[m.head&mask] = binary.NativeEndian.Uint64(last[:])
	}
	m.head = end
	return true
}

func (m *mutexBuffer) drain() {
	m.Lock()
	defer m.Unlock()
	out := make([]uint64, 0, m.head-m.tail)
	for size := uint64(len(m.words)); m.tail < m.head; {
		start := m.tail & (size - 1)
		n := min(m.head-m.tail, size-start)
		out = append(out, m.words[start:start+n]...)
		m.tail += n
	}
	keep(len(out))
}

// BenchmarkRingRecords models the reader of a trace: the time that a loop takes for
// each record.
func BenchmarkRingRecords(b *testing.B) {
	payload := make([]byte, 8)
	r := percpu.NewRing(1 << 16)
	var took time.Duration
	b.ReportAllocs()
	for b.Loop() {
		for range batch {
			r.Write(1, payload)
		}
		start := time.Now()
		for range r.Records() {
		}
		took += time.Since(start)
	}
	b.ReportMetric(float64(took.Nanoseconds())/float64(b.N)/batch, "ns/op")
}
