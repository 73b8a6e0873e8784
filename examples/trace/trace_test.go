package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/quiesce-go/quiesce/asm"
	"github.com/quiesce-go/quiesce/examples/trace/tracer"
	"github.com/quiesce-go/quiesce/internal/commandtest"
	"github.com/quiesce-go/quiesce/internal/tier"
)

// BenchmarkTrace models what restartable sequences were measured with in LTTng: an event of 32
// bits, with a number of 32 bits and the time, into a buffer of the CPU. impl=atomic is how it was
// done before: the CPU's number by an instruction, room by compare-and-swap, the commit by an
// atomic addition. impl=mutex has one buffer behind a lock. A reader copies out what the buffers
// have before they are full, which is not counted.
func BenchmarkTrace(b *testing.B) {
	const size = 1 << 16
	for _, t := range []struct {
		name string
		tier tier.Tier
	}{{"rseq", tier.RSEQ}, {"pin", tier.Pinned}, {"shared", tier.Shared}} {
		b.Run("impl=ours/tier="+t.name, func(b *testing.B) {
			now, undo := tier.Switch(t.tier)
			defer undo()
			if now != t.tier {
				b.Skipf("the %v tier does not work here, the %v one does", t.tier, now)
			}
			trace := tracer.New(size)
			event := tracer.NewEvent[uint32](trace, "n")
			benchmark(b, func(n uint32) bool { return event.Emit(n) }, func() {
				for range trace.Entries() {
				}
			})
		})
	}
	b.Run("impl=atomic", func(b *testing.B) {
		t := newAtomicTrace(size / 8)
		benchmark(b, t.emit, t.drain)
	})
	b.Run("impl=mutex", func(b *testing.B) {
		t := mutexTrace{words: make([]uint64, size/8*runtime.NumCPU())}
		benchmark(b, t.emit, t.drain)
	})
}

// benchmark measures emit in as many goroutines as GOMAXPROCS says, without the time that drain
// takes.
func benchmark(b *testing.B, emit func(n uint32) bool, drain func()) {
	const batch = 1024
	var took, lost atomic.Int64
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			missing := 0
			start := time.Now()
			for n := range uint32(batch) {
				if !emit(n) {
					missing++
				}
			}
			took.Add(int64(time.Since(start)))
			lost.Add(int64(missing))
			drain()
		}
	})
	b.ReportMetric(float64(took.Load())/float64(b.N)/batch/float64(runtime.GOMAXPROCS(0)), "ns/op")
	b.ReportMetric(float64(lost.Load())/float64(b.N)/batch, "lost/op")
}

// An atomicTrace has a buffer for each CPU whose writers do not depend on staying there.
type atomicTrace struct {
	source asm.Source
	cpus   []*atomicBuffer
}

type atomicBuffer struct {
	words     []uint64 // a power of two of them
	_         [128]byte
	head      atomic.Uint64 // where the next event goes
	committed atomic.Uint64 // words of events that are there
	_         [128]byte
	tail      atomic.Uint64
	_         [128]byte
}

func newAtomicTrace(words int) *atomicTrace {
	t := &atomicTrace{cpus: make([]*atomicBuffer, asm.Columns())}
	for _, s := range asm.Sources() {
		if s != asm.SourceRSEQ {
			t.source = s
			break
		}
	}
	for i := range t.cpus {
		t.cpus[i] = &atomicBuffer{words: make([]uint64, words)}
	}
	return t
}

func (t *atomicTrace) emit(n uint32) bool {
	cpu, _ := asm.CPUBy(t.source)
	b := t.cpus[cpu%len(t.cpus)]
	const size = 3
	for {
		head := b.head.Load()
		if head+size-b.tail.Load() > uint64(len(b.words)) {
			return false
		}
		now := asm.Cycles()
		if b.head.CompareAndSwap(head, head+size) {
			mask := uint64(len(b.words) - 1)
			b.words[head&mask] = now
			b.words[(head+1)&mask] = 4
			b.words[(head+2)&mask] = uint64(n)
			b.committed.Add(size)
			return true
		}
	}
}

func (t *atomicTrace) drain() {
	for _, b := range t.cpus {
		if head := b.head.Load(); b.committed.Load() == head {
			copyOut(b.words, b.tail.Load(), head)
			b.tail.Store(head)
		}
	}
}

type mutexTrace struct {
	sync.Mutex
	words      []uint64
	head, tail uint64
}

func (t *mutexTrace) emit(n uint32) bool {
	t.Lock()
	defer t.Unlock()
	const size = 3
	if t.head+size-t.tail > uint64(len(t.words)) {
		return false
	}
	mask := uint64(len(t.words) - 1)
	t.words[t.head&mask] = asm.Cycles()
	t.words[(t.head+1)&mask] = 4
	t.words[(t.head+2)&mask] = uint64(n)
	t.head += size
	return true
}

func (t *mutexTrace) drain() {
	t.Lock()
	defer t.Unlock()
	copyOut(t.words, t.tail, t.head)
	t.tail = t.head
}

// copyOut returns the words of a buffer from tail to head.
func copyOut(words []uint64, tail, head uint64) []uint64 {
	out := make([]uint64, 0, head-tail)
	for size := uint64(len(words)); tail < head; {
		start := tail & (size - 1)
		n := min(head-tail, size-start)
		out = append(out, words[start:start+n]...)
		tail += n
	}
	return out
}

func TestRun(t *testing.T) {
	var out, errs bytes.Buffer
	if code := run([]string{"-goroutines", "3", "-time", "5ms", "-n", "4"}, &out, &errs); code != 0 || errs.Len() != 0 {
		t.Fatalf("exit status %d, %s", code, errs.String())
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(lines) < 8 || !strings.Contains(lines[0], " request_begin {ID:") || lines[4] != "" || !strings.HasPrefix(lines[5], "entries") {
		t.Errorf("%s", out.String())
	}
}

// TestRun_JSON: each line is an object, and the entries are as many as the last line says. With a
// small buffer some events are lost, and it says how many.
func TestRun_JSON(t *testing.T) {
	for buffer, loses := range map[string]bool{"16777216": false, "32": true} {
		var out, errs bytes.Buffer
		if code := run([]string{"-goroutines", "2", "-time", "5ms", "-n", "-1", "-json", "-buffer", buffer}, &out, &errs); code != 0 || errs.Len() != 0 {
			t.Fatalf("exit status %d, %s", code, errs.String())
		}
		counts := map[string]uint64{}
		var total struct {
			Entries       map[string]uint64
			Emitted, Lost uint64
		}
		var told uint64
		last := time.Time{}
		for lines := bufio.NewScanner(&out); lines.Scan(); {
			var e struct {
				Time  time.Time
				CPU   *int
				Event string
				Value struct {
					ID, Count uint64
				}
			}
			if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
				t.Fatalf("%v in %s", err, lines.Text())
			}
			if e.Event == "" {
				if err := json.Unmarshal(lines.Bytes(), &total); err != nil {
					t.Fatal(err)
				}
				break
			}
			if e.CPU == nil || e.Time.IsZero() || e.Event != tracer.LostEvent && (e.Value.ID == 0 || *e.CPU < 0) {
				t.Errorf("%s", lines.Text())
			}
			counts[e.Event]++
			told += e.Value.Count
			last = e.Time
		}
		if fmt.Sprint(counts) != fmt.Sprint(total.Entries) || last.IsZero() {
			t.Errorf("%v, the last line says %v", counts, total.Entries)
		}
		if n := counts["request_begin"] + counts["request_end"]; n+total.Lost != total.Emitted || told != total.Lost || (total.Lost > 0) != loses {
			t.Errorf("with %s bytes: %d entries of %d events, %d lost, %d by the entries", buffer, n, total.Emitted, total.Lost, told)
		}
	}
}

type brokenWriter struct{}

func (brokenWriter) Write([]byte) (int, error) { return 0, errors.New("broken") }

func TestRun_Status(t *testing.T) {
	commandtest.Misuse(t, run, usage,
		[]string{"-x"}, []string{"x"}, []string{"-goroutines", "0"}, []string{"-time", "-1s"}, []string{"-buffer", "0"}, []string{"-buffer", "16777217"}, []string{"-n", "x"})
	var errs bytes.Buffer
	if code := run([]string{"-time", "1ms"}, brokenWriter{}, &errs); code != 1 || errs.String() != "trace: broken\n" {
		t.Errorf("exit status %d, %s", code, errs.String())
	}
}
