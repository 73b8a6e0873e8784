package main

import (
	"encoding/binary"
	"fmt"
	"math"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/puzpuzpuz/xsync/v4"

	"github.com/quiesce-go/quiesce/asm"
	"github.com/quiesce-go/quiesce/internal/tier"
	"github.com/quiesce-go/quiesce/percpu"
	"github.com/quiesce-go/quiesce/rcu"
)

// pick returns one for one CPU, and many for more.
func pick(cpus int, one, many float64) float64 {
	if cpus == 1 {
		return one
	}
	return many
}

func locals() []row {
	var rows []row
	for _, cpus := range cpuCounts() {
		rows = append(rows, row{name: "LocalDo", cpus: cpus, tier: tier.RSEQ, impls: []impl{
			{name: "percpu.Local", open: localDo},
			{name: "sync.Mutex", must: pick(cpus, 1, 0.5), open: func() work {
				var mu struct {
					_ [128]byte
					sync.Mutex
					_ [128]byte
				}
				return work{each: func(int) func(int) {
					return func(n int) {
						for range n {
							mu.Lock()
							mu.Unlock()
						}
					}
				}}
			}},
		}})
	}
	return rows
}

func localDo() work {
	l := percpu.NewLocal[int](nil)
	return work{each: func(int) func(int) {
		return func(n int) {
			for range n {
				l.Do(func(*int) {})
			}
		}
	}}
}

// perCPULocks is the row of the thread in which a lock of this CPU is taken, a pointer followed and a
// word compared: 53.4 ns before, 28.6 after.
func perCPULocks() []row {
	type word struct{ v *int }
	one := 1
	var rows []row
	source := oldSource()
	if !slices.Contains(asm.Sources(), source) {
		return nil // the state before is not to be had
	}
	for _, t := range tiers() {
		before := impl{name: source.String() + "+Mutex", thread: 28.6 / 53.4}
		if t == tier.RSEQ {
			before.must = before.thread
		}
		before.open = func() work {
			all := make([]struct {
				sync.Mutex
				word
				_ [112]byte
			}, 1024)
			for i := range all {
				all[i].v = &one
			}
			return work{each: func(int) func(int) {
				return func(n int) {
					same := 0
					for range n {
						cpu, _ := asm.CPUBy(source)
						l := &all[cpu&1023]
						l.Lock()
						if *l.v == 1 {
							same++
						}
						l.Unlock()
					}
					keep(same)
				}
			}}
		}
		rows = append(rows, row{name: "LockCompare/tier=" + t.String(), cpus: 1, tier: t, impls: []impl{
			{name: "percpu.Local", open: func() work {
				l := percpu.NewLocal(func(int) word { return word{&one} })
				return work{each: func(int) func(int) {
					return func(n int) {
						same := 0
						for range n {
							l.Do(func(w *word) {
								if *w.v == 1 {
									same++
								}
							})
						}
						keep(same)
					}
				}}
			}},
			before,
			{name: "rcu.Guard", own: true, open: func() work { // without the lock: what a section alone takes
				d := rcu.New()
				return work{
					each: func(int) func(int) {
						var p rcu.Pointer[int]
						p.Store(&one)
						return func(n int) {
							same := 0
							for range n {
								g := d.ReadLock()
								if *p.Load() == 1 {
									same++
								}
								g.Unlock()
							}
							keep(same)
						}
					},
					close: closing(d),
				}
			}},
		}})
	}
	return rows
}

// ---- RWMutex

// every is how many operations come to one write; 0 percent are never.
func every(percent int) int {
	if percent == 0 {
		return math.MaxInt
	}
	return 100 / percent
}

func rwMutexes() []row {
	var rows []row
	for _, cpus := range cpuCounts() {
		for _, percent := range []int{0, 1, 10} {
			each := every(percent)
			impls := []impl{
				{name: "percpu.RWMutex", open: func() work {
					var (
						mu percpu.RWMutex
						v  int
					)
					return work{each: func(int) func(int) {
						return func(n int) {
							s, left := 0, each
							for range n {
								if left--; left == 0 {
									left = each
									mu.Lock()
									v++
									mu.Unlock()
									continue
								}
								mu.RLock()
								s += v
								mu.RUnlock()
							}
							keep(s)
						}
					}}
				}},
				{name: "sync.RWMutex", open: func() work {
					var (
						mu sync.RWMutex
						v  int
					)
					return work{each: func(int) func(int) {
						return func(n int) {
							s, left := 0, each
							for range n {
								if left--; left == 0 {
									left = each
									mu.Lock()
									v++
									mu.Unlock()
									continue
								}
								mu.RLock()
								s += v
								mu.RUnlock()
							}
							keep(s)
						}
					}}
				}},
				{name: "xsync.RBMutex", open: func() work {
					mu := xsync.NewRBMutex()
					v := 0
					return work{each: func(int) func(int) {
						return func(n int) {
							s, left := 0, each
							for range n {
								if left--; left == 0 {
									left = each
									mu.Lock()
									v++
									mu.Unlock()
									continue
								}
								token := mu.RLock()
								s += v
								mu.RUnlock(token)
							}
							keep(s)
						}
					}}
				}},
			}
			if percent == 0 {
				impls[1].must = pick(cpus, 1, 0.3)
				impls[2].must = 0.35
			}
			rows = append(rows, row{name: fmt.Sprintf("RWMutex/writes=%d%%", percent), cpus: cpus, tier: tier.RSEQ, impls: impls})
		}
	}
	return rows
}

// ---- Pool

type buffer struct{ _ [64]byte }

func pools() []row {
	var rows []row
	for _, cpus := range cpuCounts() {
		impls := []impl{
			{name: "percpu.Pool", open: func() work {
				p := percpu.Pool[*buffer]{New: func() *buffer { return new(buffer) }}
				return work{each: func(int) func(int) {
					return func(n int) {
						for range n {
							p.Put(p.Get())
						}
					}
				}}
			}},
			{name: "sync.Pool", must: 0.7, goal: 0.5, open: func() work {
				p := sync.Pool{New: func() any { return new(buffer) }}
				return work{each: func(int) func(int) {
					return func(n int) {
						for range n {
							p.Put(p.Get().(*buffer))
						}
					}
				}}
			}},
			{name: "channel", open: func() work {
				c := make(chan *buffer, 64)
				fresh := func() *buffer { return new(buffer) }
				return work{each: func(int) func(int) {
					return func(n int) {
						for range n {
							fill(c, take(c, fresh))
						}
					}
				}}
			}},
		}
		rows = append(rows, row{name: "Pool", cpus: cpus, tier: tier.RSEQ, impls: impls})
	}

	// What is left after the garbage collector came twice between two uses.
	made := 0
	fresh := func() *buffer { made++; return new(buffer) }
	p := percpu.Pool[*buffer]{New: fresh}
	q := sync.Pool{New: func() any { return fresh() }}
	c := make(chan *buffer, 64)
	rows = append(rows, row{name: "PoolAfterGC", cpus: 1, tier: tier.RSEQ, impls: []impl{
		{name: "percpu.Pool", open: afterGC(&made, p.Get, p.Put)},
		{name: "sync.Pool", open: afterGC(&made, func() *buffer { return q.Get().(*buffer) }, func(b *buffer) { q.Put(b) })},
		{name: "channel", open: afterGC(&made, func() *buffer { return take(c, fresh) }, func(b *buffer) { fill(c, b) })},
	}})
	return rows
}

func take(c chan *buffer, fresh func() *buffer) *buffer {
	select {
	case b := <-c:
		return b
	default:
		return fresh()
	}
}

func fill(c chan *buffer, b *buffer) {
	select {
	case c <- b:
	default:
	}
}

// hits is the share of Gets that found something to use again.
const hits = "hits-%"

// afterGC measures what one takes and gives back when the garbage collector came in between: all of it
// together, and in other turns each Get alone. made counts those for which there was nothing left.
func afterGC(made *int, get func() *buffer, put func(*buffer)) func() work {
	var held [64]*buffer
	putAll := func() {
		for i, b := range held {
			put(b)
			held[i] = nil
		}
	}
	return func() work {
		return work{once: func(d time.Duration) sample {
			var (
				took          time.Duration
				each          []time.Duration
				allocs, n     int
				before, after runtime.MemStats
			)
			for i := range held {
				held[i] = get()
			}
			putAll()
			*made = 0
			for end := time.Now().Add(d); n == 0 || time.Now().Before(end); {
				runtime.GC()
				runtime.GC()
				runtime.ReadMemStats(&before)
				t := time.Now()
				for i := range held {
					held[i] = get()
				}
				putAll()
				took += time.Since(t)
				runtime.ReadMemStats(&after)
				allocs += int(after.Mallocs - before.Mallocs)
				n += len(held)

				runtime.GC()
				runtime.GC()
				for i := range held {
					t := time.Now()
					held[i] = get()
					each = append(each, time.Since(t))
				}
				putAll()
			}
			more := percentiles(each)
			more[hits] = 100 * (1 - float64(*made)/float64(n+len(each)))
			return sample{ns: float64(took) / float64(n), allocs: float64(allocs) / float64(n), n: n, more: more}
		}}
	}
}

// ---- Ring

// turn is how many records one goroutine writes before they are read, which is not measured.
const turn = 32 << 10

func rings() []row {
	payload := binary.LittleEndian.AppendUint64(nil, 0x0123456789abcdef)
	var rows []row
	for _, cpus := range cpuCounts() {
		room := 64 * turn * cpus
		rows = append(rows, row{name: "RingWrite/bytes=8", cpus: cpus, tier: tier.RSEQ, impls: []impl{
			ringImpl(cpus, room, payload),
			{name: "Mutex+buffer", must: pick(cpus, 0.6, 0.3), open: func() work {
				b := &lockedBuffer{bytes: make([]byte, room)}
				return inTurns(cpus, func(n int) {
					for range n {
						b.write(1, payload)
					}
				}, func() int { n := b.n; b.n, b.used = 0, 0; return n })
			}},
		}})
	}
	source := oldSource()
	if !slices.Contains(asm.Sources(), source) {
		return rows // the state before is not to be had
	}
	// The row of the thread: an event of LTTng-UST, with its header of 32 bits and a payload of 32.
	for _, t := range tiers() {
		room := 64 * turn
		before := impl{name: source.String() + "+atomic", thread: 98.0 / 117.4, open: func() work {
			b := newAtomicBuffers(source, room)
			return inTurns(1, func(n int) {
				for range n {
					b.write(1, payload[:4])
				}
			}, b.drain)
		}}
		if t == tier.RSEQ {
			before.must = before.thread
		}
		rows = append(rows, row{name: "RingWrite/bytes=4/tier=" + t.String(), cpus: 1, tier: t, impls: []impl{
			ringImpl(1, room, payload[:4]),
			before,
		}})
	}
	return rows
}

func ringImpl(cpus, room int, payload []byte) impl {
	return impl{name: "percpu.Ring", open: func() work {
		r := percpu.NewRing(room)
		return inTurns(cpus, func(n int) {
			for range n {
				r.Write(1, payload)
			}
		}, func() (n int) {
			for range r.Records() {
				n++
			}
			return n
		})
	}}
}

// inTurns has write called by a goroutine of each CPU, with a drain after each turn, which says how
// many there were. Only writing is measured.
func inTurns(cpus int, write func(n int), drain func() int) work {
	return work{once: func(d time.Duration) sample {
		var took, n int64
		for end := time.Now().Add(d); n == 0 || time.Now().Before(end); {
			var wg sync.WaitGroup
			var sum atomic.Int64
			begin := make(chan struct{})
			for range cpus {
				wg.Go(func() {
					<-begin
					t := time.Now()
					write(turn)
					sum.Add(int64(time.Since(t)))
				})
			}
			close(begin)
			wg.Wait()
			took += sum.Load() / int64(cpus)
			n += int64(cpus) * turn
			if got := drain(); got != cpus*turn {
				panic(fmt.Sprintf("%d records of %d", got, cpus*turn))
			}
		}
		return sample{ns: float64(took) / float64(n), n: int(n)}
	}}
}

// A lockedBuffer is what one writes without a Ring: a lock around a buffer, with the time.
type lockedBuffer struct {
	mu    sync.Mutex
	bytes []byte
	used  int
	n     int // records
}

func (b *lockedBuffer) write(event uint32, payload []byte) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.bytes)-b.used < 16+len(payload) {
		return false
	}
	putRecord(b.bytes[b.used:], event, payload)
	b.used += (16 + len(payload) + 7) &^ 7
	b.n++
	return true
}

func putRecord(to []byte, event uint32, payload []byte) {
	binary.LittleEndian.PutUint64(to, asm.Cycles())
	binary.LittleEndian.PutUint32(to[8:], event)
	binary.LittleEndian.PutUint32(to[12:], uint32(len(payload)))
	copy(to[16:], payload)
}

// atomicBuffers are the state before restartable sequences: the number of the CPU chooses a buffer, room in
// which is reserved and committed by locked instructions.
type atomicBuffers struct {
	source asm.Source
	all    []atomicBuffer
}

type atomicBuffer struct {
	bytes     []byte
	reserved  atomic.Int64
	committed atomic.Int64
	_         [88]byte
}

func newAtomicBuffers(source asm.Source, room int) *atomicBuffers {
	b := &atomicBuffers{source, make([]atomicBuffer, runtime.NumCPU())}
	for i := range b.all {
		b.all[i].bytes = make([]byte, room)
	}
	return b
}

func (b *atomicBuffers) write(event uint32, payload []byte) bool {
	cpu, _ := asm.CPUBy(b.source)
	c := &b.all[cpu%len(b.all)]
	size := int64(16+len(payload)+7) &^ 7
	for {
		at := c.reserved.Load()
		if at+size > int64(len(c.bytes)) {
			return false
		}
		if c.reserved.CompareAndSwap(at, at+size) {
			putRecord(c.bytes[at:], event, payload)
			c.committed.Add(size)
			return true
		}
	}
}

// drain is called when nobody writes. All records are of one size.
func (b *atomicBuffers) drain() (n int) {
	for i := range b.all {
		c := &b.all[i]
		if end := c.committed.Load(); end > 0 {
			size := (16 + int64(binary.LittleEndian.Uint32(c.bytes[12:])) + 7) &^ 7
			n += int(end / size)
			c.reserved.Store(0)
			c.committed.Store(0)
		}
	}
	return n
}
