package percpu_test

import (
	"encoding/binary"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/quiesce-go/quiesce/asm"
	"github.com/quiesce-go/quiesce/percpu"
)

func TestRing(t *testing.T) {
	onTiers(t, func(t *testing.T) {
		r := percpu.NewRing(4096)
		for i := range 100 {
			p := make([]byte, i)
			for k := range p {
				p[k] = byte(i + k)
			}
			for !r.Write(uint32(i), p) {
				t.Fatal(i)
			}
			n := 0
			for rec := range r.Records() {
				n++
				if rec.Event != uint32(i) || string(rec.Payload) != string(p) {
					t.Fatalf("%d: %+v", i, rec)
				}
			}
			if n != 1 {
				t.Fatal(i, n)
			}
		}
		if r.Dropped() != 0 {
			t.Fatal(r.Dropped())
		}
	})
}

// BenchmarkRing models a tracer's event: a record of 8 bytes with its time, beside
// a buffer of the same layout, and as large as all of the Ring's, behind a lock. A
// reader empties them when they are about to be full, which is not counted.
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
	m.tail = m.head
}
