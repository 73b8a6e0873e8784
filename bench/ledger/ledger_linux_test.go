package ledger_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/quiesce-go/quiesce/asm"
	"github.com/quiesce-go/quiesce/idr"
	"github.com/quiesce-go/quiesce/percpu"
	"github.com/quiesce-go/quiesce/rcu"
	"github.com/quiesce-go/quiesce/seqlock"
)

// The test below finds out which cache lines an operation writes: it compares all memory of the
// process before and after, on one CPU and then on another. What it cannot see is a store of the value
// that was there already; so each operation lets it look in the middle too, where what begins is not
// over. And it sees what is written, not what that costs: how lines move between caches is the
// processor's.

// A ledger is what is known of an operation.
type ledger struct {
	name string
	// own is how many lines it writes, at most, that only one of two CPUs writes, and at least one if it is
	// not 0. shared is how many both write.
	own, shared int
	// do runs it, as the user number cpu of two, and calls look when there may be something to see.
	do func(cpu int, look func())
}

type ledgerObject struct{ _ [128]byte }

func ledgers(t *testing.T) []ledger {
	var (
		counter percpu.Counter
		words   = percpu.NewWords(8)
		batch   = percpu.NewBatchCounter(1 << 40)
		local   = percpu.NewLocal[[16]int](nil)
		ref     = percpu.NewRef(nil)
		rw      percpu.RWMutex
		ring    = percpu.NewRing(1 << 16)
		domain  = rcu.New()
		readers = [2]*rcu.Reader{domain.NewReader(), domain.NewReader()}
		ids     idr.IDR[ledgerObject]
		handles = idr.NewRegistry[ledgerObject](domain, nil)
		value   seqlock.Value[[8]uint64]
		latch   seqlock.Latch[[8]uint64]
		copies  [2][8]uint64
	)
	t.Cleanup(func() {
		for _, r := range readers {
			r.Close()
		}
		if err := domain.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	id, err := ids.Alloc(new(ledgerObject))
	if err != nil {
		t.Fatal(err)
	}
	handle, err := handles.Add(new(ledgerObject))
	if err != nil {
		t.Fatal(err)
	}
	// What everybody writes, to see that the test sees it.
	shared := new(struct {
		_  [128]byte
		n  atomic.Int64
		_  [120]byte
		rw sync.RWMutex
		_  [128]byte
	})
	pair := func(begin, end func()) func(int, func()) {
		return func(_ int, look func()) { begin(); look(); end(); look() }
	}
	once := func(f func()) func(int, func()) {
		return func(_ int, look func()) { f(); look() }
	}
	return []ledger{
		{"atomic.Int64.Add", 0, 1, once(func() { shared.n.Add(1) })},
		{"sync.RWMutex.RLock, RUnlock", 0, 1, pair(shared.rw.RLock, shared.rw.RUnlock)},

		{"Counter.Add", 1, 0, once(func() { counter.Add(1) })},
		{"Words.Add", 1, 0, once(func() { words.Add(3, 1) })},
		{"BatchCounter.Add, within the batch", 1, 0, once(func() { batch.Add(1) })},
		{"Local.Do", 2, 0, func(_ int, look func()) { local.Do(func(v *[16]int) { v[3]++; look() }); look() }},
		{"Ref.Get, Put", 1, 0, pair(ref.Get, ref.Put)},
		{"RWMutex.RLock, RUnlock", 1, 0, pair(rw.RLock, rw.RUnlock)},
		{"Ring.Write", 2, 0, once(func() { ring.Write(1, []byte("12345678")) })},
		{"Reader.Lock, Unlock", 1, 0, func(cpu int, look func()) { readers[cpu].Lock(); look(); readers[cpu].Unlock(); look() }},
		{"Domain.ReadLock, Guard.Unlock", 1, 0, func(_ int, look func()) { g := domain.ReadLock(); look(); g.Unlock(); look() }},
		{"IDR.Find", 0, 0, once(func() {
			if ids.Find(id) == nil {
				panic("not found")
			}
		})},
		{"Registry.Obtain, in a section", 1, 0, func(cpu int, look func()) {
			readers[cpu].Lock()
			if _, err := handles.Obtain(handle); err != nil {
				panic(err)
			}
			look()
			readers[cpu].Unlock()
			look()
		}},
		{"Value.Load", 0, 0, func(cpu int, look func()) { value.LoadTo(&copies[cpu]); look() }},
		{"Latch.Load", 0, 0, func(cpu int, look func()) { latch.LoadTo(&copies[cpu]); look() }},
	}
}

// oneMore is what no operation of the ledger writes.
var oneMore struct {
	_ [128]byte
	n atomic.Int64
	_ [120]byte
}

// TestLedger holds each operation to what docs/benchmarks.md says of it. Each is then measured once more,
// with one more line that both users write, which is to be found: none of the operations hides it.
func TestLedger(t *testing.T) {
	if _, err := asm.RSEQ(); err != nil {
		t.Skip("no restartable sequences: ", err)
	}
	var allowed unix.CPUSet
	if err := unix.SchedGetaffinity(0, &allowed); err != nil || allowed.Count() < 2 {
		t.Skipf("needs two CPUs, has %d (%v)", allowed.Count(), err)
	}
	var cpus []int
	for i := 0; len(cpus) < 2; i++ {
		if allowed.IsSet(i) {
			cpus = append(cpus, i)
		}
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	defer unix.SchedSetaffinity(0, &allowed)
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	m := newMemory(t)

	for _, l := range ledgers(t) {
		written, both, wrong := m.measure(l, cpus)
		t.Logf("%-36s lines written: %d and %d, both write %d", l.name, len(written[0]), len(written[1]), len(both))
		if wrong != "" {
			t.Errorf("%s: %s", l.name, wrong)
		}
		faulty := l
		faulty.shared++
		faulty.do = func(cpu int, look func()) { l.do(cpu, look); oneMore.n.Add(1); look() }
		if _, _, wrong := m.measure(faulty, cpus); wrong != "" {
			t.Errorf("%s, with a line that both write: %s", l.name, wrong)
		}
	}
}

// measure compares, up to five times, until it is as the ledger has it: what the runtime does by chance may
// look like more, or hide a line. What an operation does, it does each time.
func (m *memory) measure(l ledger, cpus []int) (written [2][]uintptr, both []uintptr, wrong string) {
	for range 5 {
		written, both = m.compare(l, cpus)
		if wrong = l.check(written, both); wrong == "" {
			break
		}
	}
	return written, both, wrong
}

// compare returns the lines that l writes on each of two CPUs, and those that it writes on both.
func (m *memory) compare(l ledger, cpus []int) (written [2][]uintptr, both []uintptr) {
	for i, cpu := range cpus {
		var one unix.CPUSet
		one.Set(cpu)
		if err := unix.SchedSetaffinity(0, &one); err != nil {
			m.t.Fatal(err)
		}
		l.do(i, func() {}) // gets memory, registers the thread
		written[i] = m.writes(func(look func()) { l.do(i, look) })
	}
	for _, line := range written[0] {
		if slices.Contains(written[1], line) {
			both = append(both, line)
		}
	}
	return written, both
}

// check says what is not as the ledger has it.
func (l ledger) check(written [2][]uintptr, both []uintptr) string {
	if len(both) != l.shared {
		return fmt.Sprintf("both CPUs write the lines %#x, want %d", both, l.shared)
	}
	for i := range written {
		if n := len(written[i]) - len(both); n > l.own || n == 0 && l.own > 0 {
			return fmt.Sprintf("user %d alone writes %d of the lines %#x, want up to %d", i, n, written[i], l.own)
		}
	}
	return ""
}

const lineBytes = 64

// A memory is the process's, as it was at some time.
type memory struct {
	t       *testing.T
	mem     *os.File
	regions []region
	base    uintptr // of where copies are, which are not looked at
	copies  []byte
	used    int
	stack   [2]uintptr // of the goroutine, as far as it is in use
}

// A region is a run of pages that are there, with its copy.
type region struct {
	start uintptr
	copy  []byte
	now   []byte
}

const copyBytes = 512 << 20

// runtimePage is the unit in which the runtime uses memory either for stacks or for something else.
const runtimePage = 8 << 10

func newMemory(t *testing.T) *memory {
	mem, err := os.Open("/proc/self/mem")
	if err != nil {
		t.Skip("cannot look at the memory of the process: ", err)
	}
	// Not from the Go heap, which would look different each time.
	b, err := unix.Mmap(-1, 0, copyBytes, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS|unix.MAP_NORESERVE)
	if err != nil {
		t.Skip("no room for copies: ", err)
	}
	t.Cleanup(func() { mem.Close(); unix.Munmap(b) })
	return &memory{t: t, mem: mem, copies: b, base: uintptr(unsafe.Pointer(&b[0]))}
}

// writes returns the lines that f writes each time it is run, up to some call of look or from one to
// the next, and that are not written when nothing is done, nor are part of the goroutine's stack.
func (m *memory) writes(f func(look func())) []uintptr {
	const rounds = 5
	noise := make(map[uintptr]bool)
	count := make(map[uintptr]int)
	seen := make(map[uintptr]bool)
	const below = 4 << 10 // more than what is called from here needs
	growStack()
	var here byte
	top := uintptr(unsafe.Pointer(&here))
	m.stack = [2]uintptr{(top - below) &^ (runtimePage - 1), top | (runtimePage - 1)}
	m.find()
	for range 3 * rounds { // what the runtime and the test itself write
		m.diff(noise)
	}
	between := make(map[uintptr]bool) // looks
	for range rounds {
		clear(seen)
		m.diff(between)
		f(func() { m.diff(seen); m.diff(noise) })
		for line := range seen {
			count[line]++
		}
	}
	var lines []uintptr
	for line, n := range count {
		if n == rounds && !noise[line] {
			lines = append(lines, line)
		}
	}
	slices.Sort(lines)
	return lines
}

// find copies all pages that can be written and are there.
func (m *memory) find() {
	m.regions, m.used = m.regions[:0], 0
	maps, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		m.t.Fatal(err)
	}
	pagemap, err := os.Open("/proc/self/pagemap")
	if err != nil {
		m.t.Skip("cannot find out which pages there are: ", err)
	}
	defer pagemap.Close()
	page := uintptr(os.Getpagesize())
	entries := make([]byte, 1<<16) // 8 bytes about each page
	for line := range bytes.Lines(maps) {
		var start, end uintptr
		var perms string
		if _, err := fmt.Sscanf(string(line), "%x-%x %s", &start, &end, &perms); err != nil {
			m.t.Fatal(err)
		}
		if perms[1] != 'w' || start <= m.base && m.base < end {
			continue
		}
		for at := start; at < end; {
			n, err := pagemap.ReadAt(entries[:min(uintptr(len(entries)), (end-at)/page*8)], int64(at/page*8))
			if n < 8 {
				m.t.Fatal(err)
			}
			for i := 0; i+8 <= n; i += 8 {
				if binary.NativeEndian.Uint64(entries[i:])>>63 == 1 {
					m.add(at, int(page))
				}
				at += page
			}
		}
	}
	for _, r := range m.regions {
		m.read(r.copy, r.start)
	}
}

// add has a page copied, in one region with the page before it.
func (m *memory) add(start uintptr, size int) {
	if m.used+2*size > len(m.copies) {
		m.t.Skip("the process is too large to be looked at")
	}
	// Copies grow from the beginning, and what is compared with them is as far into the second half.
	half := len(m.copies) / 2
	at := m.used / 2
	m.used += 2 * size
	if n := len(m.regions); n > 0 {
		if r := &m.regions[n-1]; r.start+uintptr(len(r.copy)) == start {
			r.copy = r.copy[:len(r.copy)+size]
			r.now = r.now[:len(r.now)+size]
			return
		}
	}
	m.regions = append(m.regions, region{start, m.copies[at : at+size : half], m.copies[half+at : half+at+size]})
}

func (m *memory) read(to []byte, from uintptr) {
	if _, err := m.mem.ReadAt(to, int64(from)); err != nil {
		clear(to) // it was unmapped meanwhile
	}
}

// diff adds the lines that have changed since the last look.
func (m *memory) diff(to map[uintptr]bool) {
	for _, r := range m.regions {
		m.read(r.now, r.start)
	}
	for _, r := range m.regions {
		if bytes.Equal(r.copy, r.now) {
			continue
		}
		for i := 0; i < len(r.now); i += lineBytes {
			line := r.start + uintptr(i)
			if !bytes.Equal(r.copy[i:i+lineBytes], r.now[i:i+lineBytes]) && (line < m.stack[0] || m.stack[1] < line) {
				to[line] = true
			}
		}
		copy(r.copy, r.now)
	}
}

// growStack leaves the goroutine so much stack that all that writes looks past is stack.
//
//go:noinline
func growStack() {
	var b [32 << 10]byte
	runtime.KeepAlive(&b[len(os.Args)])
}
