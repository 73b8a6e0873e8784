package asm

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"unsafe"

	"github.com/quiesce-go/quiesce/internal/storm"
)

// A logged is what a test reads out of a Log.
type logged struct {
	time    uint64
	event   uint32
	payload string
}

// drain takes out all records that are in l.
func drain(l *Log) (all []logged) {
	for col := range l.Columns() {
		end := l.End(col)
		for at := l.Start(col); at != end; {
			time, event, size, next := l.Record(col, at)
			p := make([]byte, size)
			l.Payload(col, at, p)
			all = append(all, logged{time, event, string(p)})
			l.Free(col, next)
			at = next
		}
	}
	return all
}

// oneColumn runs f where all it writes goes to one column.
func oneColumn(t *testing.T, f func()) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1)) // there is only one P
	stay(t, f)
}

// pattern is n bytes that differ from one n, and from one place, to another.
func pattern(n int) []byte {
	p := make([]byte, n)
	for i := range p {
		p[i] = byte(i*7 + n*31 + 1)
	}
	return p
}

func TestLog_Make(t *testing.T) {
	for _, n := range []int{0, -1, MaxLog + 1, -1 << 31, 1<<31 - 1} {
		if p := panics(func() { new(Log).Make(n) }); p == nil || !strings.HasPrefix(fmt.Sprint(p), "asm: ") {
			t.Errorf("Make(%d): panic %v", n, p)
		}
	}
	var zero Log
	for name, f := range map[string]func(){"Write": func() { zero.Write(1, nil) }, "End": func() { zero.End(0) }} {
		if p := panics(f); p != notMade {
			t.Errorf("%s of a zero Log: panic %v", name, p)
		}
	}
	onTiers(t, func(t *testing.T) {
		for size, want := range map[int]int{1: 32, 32: 32, 33: 64, 4096: 4096, 5000: 8192, 1 << 20: 1 << 20} {
			var l Log
			l.Make(size)
			oneColumn(t, func() { // in one column, 16 bytes a record
				n := 0
				for l.Write(1, nil) {
					n++
				}
				if n != want/16 || l.Dropped() != 1 {
					t.Errorf("Make(%d): %d empty records fit, want %d; %d dropped", size, n, want/16, l.Dropped())
				}
			})
		}
	})
}

// TestLog_Lengths writes payloads of all lengths at all places of a buffer, so that
// each part of a record lies on both sides of its end.
func TestLog_Lengths(t *testing.T) {
	onTiers(t, func(t *testing.T) {
		var l Log
		l.Make(256)
		oneColumn(t, func() {
			for round := range 40 { // 32 places
				for n := range 101 {
					p := pattern(n)
					event := uint32(n)<<24 | uint32(round) | 1<<31
					if !l.Write(event, p) {
						t.Fatalf("%d bytes do not fit into an empty buffer", n)
					}
					if got := drain(&l); len(got) != 1 || got[0].event != event || got[0].payload != string(p) {
						t.Fatalf("wrote %#x, %x; read %x", event, p, got)
					}
				}
				l.Write(0, nil) // two words: moves on
				drain(&l)
			}
		})
	})
}

// TestLog_Twins has the assembly and the Go code write the same records, and
// compares every word of the buffers, and the words of other columns and behind
// the record, which are not to change.
func TestLog_Twins(t *testing.T) {
	if _, err := RSEQ(); err != nil {
		t.Skip(err)
	}
	const size, guard = 128, 0x5a5a5a5a5a5a5a5a
	var l Log // the rseq tier's column by assembly, the shared tier's with the same number by Go
	l.Make(size)
	if !l.makeBuffers(tierShared) {
		t.Fatal("no buffers")
	}
	oneColumn(t, func() {
		col := Column()
		if col >= columns {
			t.Skip("libc has registered the first thread with the kernel, and not for us")
		}
		a, g := l.buffer(tierRSEQ, col), l.buffer(tierShared, col)
		le := l.ends.lease.Load()
		byGo := cells{le, tierShared, col}
		for i := range 3000 {
			p := pattern(i % 101)
			for w := range uint64(size / 8) {
				*a.word(w), *g.word(w) = guard, guard
			}
			dropped := l.Dropped()
			ok := logWrite(&l, uint32(i), p)
			if want := byGo.log(&l, uint32(i), p); ok != want || (l.Dropped() == dropped) != ok {
				t.Fatalf("record %d: %v in assembly, %v in Go, %d dropped", i, ok, want, l.Dropped()-dropped)
			}
			for _, w := range []int{logHead, logSeen} {
				if x, y := *le.word(tierRSEQ, col, w), *le.word(tierShared, col, w); x != y {
					t.Fatalf("record %d: word %d of the column is %d by assembly, %d by Go", i, w, x, y)
				}
			}
			end := l.End(col)
			at := end
			if ok {
				at -= recordWords(len(p))
				*a.word(at) = *g.word(at) // the time
				if n := len(p) % 8; n != 0 {
					last := binary.NativeEndian.AppendUint64(nil, *g.word(end - 1))
					clear(last[n:]) // the assembly fills up with zeros
					*g.word(end - 1) = binary.NativeEndian.Uint64(last)
				}
			}
			for w := range uint64(size / 8) {
				if *a.word(w) != *g.word(w) {
					t.Fatalf("record %d, of %d bytes, at %d: word %d is %#x by assembly, %#x by Go", i, len(p), at, w, *a.word(w), *g.word(w))
				}
			}
			for other := range columns {
				if o := l.buffer(tierRSEQ, other); other != col && (*o.word(0) != 0 || l.End(other) != 0) {
					t.Fatalf("record %d: column %d changed too", i, other)
				}
			}
			if i%3 == 2 { // or else the buffer is full now and then
				l.Free(col, end)
				l.Free(tierShared*columns+col, end)
			}
		}
		if l.Dropped() < 100 {
			t.Errorf("%d records were dropped: the test does not do what it should", l.Dropped())
		}
	})
}

// TestLog_Full: a record that does not fit is dropped and counted, now or, if it is
// larger than the buffer, for ever; and nothing of it is seen.
func TestLog_Full(t *testing.T) {
	onTiers(t, func(t *testing.T) {
		var l Log
		l.Make(256)
		for _, n := range []int{241, 256, 4096, logLongest, logLongest + 1, 1 << 20} {
			before := l.Dropped()
			if l.Write(1, make([]byte, n)) || l.Dropped() != before+1 {
				t.Errorf("%d bytes fit into 256", n)
			}
		}
		if got := drain(&l); len(got) != 0 {
			t.Errorf("%v", got)
		}
		oneColumn(t, func() {
			if !l.Write(2, make([]byte, 240)) || l.Write(3, nil) {
				t.Error("a record of 256 bytes does not fill a buffer of as many")
			}
			if got := drain(&l); len(got) != 1 || got[0].event != 2 {
				t.Errorf("%v", got)
			}
			if !l.Write(4, nil) {
				t.Error("it is still full")
			}
		})
	})
}

// TestLog_Long: a payload that is too long for a sequence goes where the payloads of
// threads that fall back go.
func TestLog_Long(t *testing.T) {
	onTiers(t, func(t *testing.T) {
		var l Log
		l.Make(1 << 20)
		var want []logged
		for i, n := range []int{logLongest - 1, logLongest, logLongest + 1, 500_000} {
			p := pattern(n)
			if !l.Write(uint32(i), p) {
				t.Fatalf("%d bytes do not fit", n)
			}
			want = append(want, logged{event: uint32(i), payload: string(p)})
		}
		for col := range tierShared * columns {
			for at := l.Start(col); at != l.End(col); {
				_, _, size, next := l.Record(col, at)
				if size > logLongest {
					t.Errorf("%d bytes are in column %d", size, col)
				}
				at = next
			}
		}
		got := drain(&l)
		if len(got) != len(want) {
			t.Fatalf("%d records", len(got))
		}
		for i, w := range want {
			found := false
			for _, g := range got {
				found = found || g.event == w.event && g.payload == w.payload
			}
			if !found {
				t.Errorf("record %d is not there", i)
			}
		}
	})
}

// TestLog_Fallback: a thread whose CPU number is out of range writes to the shared
// tier's columns, and that is read.
func TestLog_Fallback(t *testing.T) {
	if _, err := RSEQ(); err != nil {
		t.Skip(err)
	}
	setRSEQColumns(0) // as if each number were too high
	defer setRSEQColumns(uint32(columns))
	var l Log
	l.Make(4096)
	for range 10 {
		l.Write(1, []byte("fallen"))
	}
	if n := l.Dropped(); n != 0 {
		t.Errorf("%d dropped", n)
	}
	for col := range l.Columns() {
		if col < tierShared*columns && l.End(col) != 0 {
			t.Errorf("there is something in column %d", col)
		}
	}
	if got := drain(&l); len(got) != 10 || got[9].payload != "fallen" {
		t.Errorf("%v", got)
	}
}

func TestLog_NoAllocation(t *testing.T) {
	onTiers(t, func(t *testing.T) {
		var l Log
		l.Make(4096)
		l.Write(1, nil)
		if n := testing.AllocsPerRun(1000, func() { // most do not fit
			var p [24]byte
			l.Write(1, p[:])
		}); n != 0 {
			t.Errorf("%v allocations", n)
		}
	})
}

// TestLog_Time: the times in a column do not fall. They are read on the column's
// CPU, between the commit before and its own.
func TestLog_Time(t *testing.T) {
	onTiers(t, func(t *testing.T) {
		var l Log
		l.Make(4096)
		oneColumn(t, func() {
			for range 100 {
				before := CyclesOrdered()
				for range 100 {
					l.Write(1, nil)
				}
				after := CyclesOrdered()
				for _, r := range drain(&l) {
					if r.time < before || r.time > after {
						t.Fatalf("%d is not from %d to %d", r.time, before, after)
					}
					before = r.time
				}
			}
		})
	})
}

// A logWriter is Log.Write or a mutant of it.
type logWriter func(l *Log, event uint32, payload []byte) bool

// A logReader copies the payload of a record and frees its room: takeLog or a mutant
// of it.
type logReader func(l *Log, col int, at, next uint64, payload []byte)

func takeLog(l *Log, col int, at, next uint64, payload []byte) {
	l.Payload(col, at, payload)
	l.Free(col, next)
}

// hammerLog has goroutines, and threads that come and go, write records with write
// while one reader takes them out with take, under a storm, and returns an error if
// a record is lost, comes twice or is not what was written.
func hammerLog(t *testing.T, n int, write logWriter, take logReader) error {
	t.Helper()
	const goroutines = 8
	var l Log
	l.Make(1 << 14)
	var written, refused, threads atomic.Int64
	var over atomic.Bool
	n /= goroutines
	one := func(id uint64) {
		var p [100]byte
		size := 8 + id*13%93
		binary.NativeEndian.PutUint64(p[:], id)
		for k := range p[8:size] {
			p[8+k] = byte(id*31) + byte(k)
		}
		if write(&l, uint32(id), p[:size]) {
			written.Add(1)
		} else {
			refused.Add(1)
			runtime.Gosched() // to the reader
		}
	}
	const fromThreads = 1 << 40
	stop := storm.Start(t, storm.Threads(func() { one(fromThreads + uint64(threads.Add(1))) }))
	var writers, reader sync.WaitGroup
	for g := range goroutines {
		writers.Go(func() {
			for i := range n {
				one(uint64(g*n + i))
				if i%1024 == 0 {
					runtime.Gosched()
				}
			}
		})
	}
	seen := map[uint64]bool{}
	var failed error
	reader.Go(func() {
		for last := false; failed == nil; {
			last = over.Load()
			failed = checkLog(&l, seen, take)
			if last {
				return
			}
			runtime.Gosched()
		}
	})
	writers.Wait()
	stop()
	over.Store(true)
	reader.Wait()
	switch {
	case failed != nil:
		return failed
	case int64(len(seen)) != written.Load():
		return fmt.Errorf("%d records were written and %d were read", written.Load(), len(seen))
	case int64(l.Dropped()) != refused.Load():
		return fmt.Errorf("%d did not fit, %d are counted", refused.Load(), l.Dropped())
	}
	t.Logf("%d written, %d did not fit", written.Load(), refused.Load())
	return nil
}

// checkLog takes out all records that are in l and says what is wrong with them.
func checkLog(l *Log, seen map[uint64]bool, take logReader) error {
	for col := range l.Columns() {
		end := l.End(col)
		for at := l.Start(col); at != end; {
			_, event, size, next := l.Record(col, at)
			if size < 8 || size > 100 || int64(end-next) < 0 {
				return fmt.Errorf("column %d, at %d of %d: a record of %d bytes", col, at, end, size)
			}
			p := make([]byte, size)
			take(l, col, at, next, p)
			id := binary.NativeEndian.Uint64(p)
			if event != uint32(id) || size != int(8+id*13%93) {
				return fmt.Errorf("column %d: event %#x of %d bytes with id %#x", col, event, size, id)
			}
			for k, b := range p[8:] {
				if b != byte(id*31)+byte(k) {
					return fmt.Errorf("column %d, id %#x: byte %d is %#x", col, id, k, b)
				}
			}
			if seen[id] {
				return fmt.Errorf("column %d: %#x came twice", col, id)
			}
			seen[id] = true
			at = next
		}
	}
	return nil
}

// TestHammerLog: no record is lost, doubled or torn.
func TestHammerLog(t *testing.T) {
	onTiers(t, func(t *testing.T) {
		if err := hammerLog(t, storm.Size(400_000), (*Log).Write, takeLog); err != nil {
			t.Error(err)
		}
	})
}

// FuzzLog writes what the fuzzer says and reads it back.
func FuzzLog(f *testing.F) {
	f.Add(uint32(1), []byte("payload"), uint8(3))
	f.Fuzz(func(t *testing.T, event uint32, payload []byte, skip uint8) {
		var l Log
		l.Make(1024)
		for range skip {
			l.Write(0, nil)
			drain(&l)
		}
		ok := l.Write(event, payload)
		got := drain(&l)
		if ok != (len(payload) <= 1024-16) || ok && (len(got) != 1 || got[0].event != event || !bytes.Equal([]byte(got[0].payload), payload)) {
			t.Errorf("%#x, %x: %v, %x", event, payload, ok, got)
		}
	})
}

// TestLog_StackGrows is TestBlock_StackGrows for a Log: the payload is on the stack, too, and what looks at it goes on in
// Go, because nothing fits or because no sequence can be used.
func TestLog_StackGrows(t *testing.T) {
	// It begins at so many places, which are as far apart as the frames of lower, that they reach over a frame of
	// descendLog: from some of them there is room for that where a stack ends, and none for what Write calls.
	const depth, places = 500, 40
	for name, size := range map[string]int{"full": 1, "slow": 1 << 20} {
		t.Run(name, func(t *testing.T) {
			onTiers(t, func(t *testing.T) {
				if size > 1 && currentTier() == tierRSEQ {
					setRSEQColumns(0)
					defer setRSEQColumns(uint32(columns))
				}
				var l Log
				l.Make(size)
				grown := make(chan int)
				during := 0
				for i := range places {
					go func() { grown <- lower(i, func() int { return descendLog(t, &l, depth, size > 1) }) }()
					during += <-grown
					records := 0
					for _, r := range drain(&l) {
						if want := strings.Repeat(string([]byte{byte(r.event)}), 300); r.payload != want {
							t.Fatalf("event %d: %x", r.event, r.payload)
						}
						records++
					}
					if size > 1 && records != depth+1 || size == 1 && l.Dropped() != uint64((i+1)*(depth+1)) {
						t.Fatalf("%d records, %d dropped", records, l.Dropped())
					}
				}
				if during == 0 {
					t.Error("the stack grew elsewhere only: the test does not do what it should")
				}
			})
		})
	}
}

// lower calls f n small frames lower on the stack.
//
//go:noinline
func lower(n int, f func() int) int {
	if n > 0 {
		return lower(n-1, f)
	}
	return f()
}

// descendLog writes to l at each depth, and returns how often the stack was somewhere else afterwards.
//
//go:noinline
func descendLog(t *testing.T, l *Log, n int, fits bool) (grown int) {
	var frame [512]byte // more than what it calls has, so that those find too little left
	for i := range frame {
		frame[i] = byte(n)
	}
	before := uintptr(unsafe.Pointer(&frame))
	ok := l.Write(uint32(n), frame[:300])
	if uintptr(unsafe.Pointer(&frame)) != before {
		grown++
	}
	if ok != fits {
		t.Errorf("Write returns %v at %d", ok, n)
	}
	if n > 0 {
		grown += descendLog(t, l, n-1, fits)
	}
	for i, c := range frame {
		if c != byte(n) {
			t.Errorf("byte %d of the frame is %#x, want %#x", i, c, byte(n))
		}
	}
	return grown
}

// TestLog_Stack: the stack on which a payload lies may move while Write goes on in Go
// code. To see a look at where it was before, run it with GODEBUG=efence=1.
func TestLog_Stack(t *testing.T) {
	const depth = 300
	onTiers(t, func(t *testing.T) {
		var l Log
		l.Make(1 << 16)
		for start := range 50 {
			done := make(chan bool)
			go func() { done <- writeDeep(&l, start, depth) }() // on a small stack, which grows
			if !<-done {
				t.Fatal("it does not fit")
			}
			n := 0
			for _, r := range drain(&l) {
				if p := deepPayload(int(r.event)); r.payload != string(p[:]) {
					t.Errorf("event %d: %x, want %x", r.event, r.payload, p)
				}
				n++
			}
			if n != depth+1 {
				t.Errorf("%d records, want %d", n, depth+1)
			}
		}
	})
}

// writeDeep writes a record from each frame of a deep stack, which begins at one of
// many places.
//
//go:noinline
func writeDeep(l *Log, start, depth int) bool {
	if start > 0 {
		return writeDeep(l, start-1, depth)
	}
	p := deepPayload(depth)
	return l.Write(uint32(depth), p[:]) && (depth == 0 || writeDeep(l, 0, depth-1))
}

func deepPayload(depth int) (p [40]byte) {
	for i := range p {
		p[i] = byte(depth + i)
	}
	return p
}
