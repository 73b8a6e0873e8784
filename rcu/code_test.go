package rcu_test

import (
	"regexp"
	"runtime"
	"strings"
	"testing"

	"github.com/quiesce-go/quiesce/internal/buildtest"
	"github.com/quiesce-go/quiesce/rcu"
)

type box struct{ n int }

var probes = []any{probeReader, probeReaderPlain, probeGuard}

// probeReader is a section of a Reader around an atomic load, as users write it.
//
//go:noinline
func probeReader(r *rcu.Reader, p *rcu.Pointer[box]) int {
	r.Lock()
	n := p.Load().n
	r.Unlock()
	return n
}

// probeReaderPlain is one without an atomic operation in it, which a compiler could find easier to move.
//
//go:noinline
func probeReaderPlain(r *rcu.Reader, p *box) int {
	r.Lock()
	n := p.n
	r.Unlock()
	return n
}

//go:noinline
func probeGuard(d *rcu.Domain, p *rcu.Pointer[box]) int {
	g := d.ReadLock()
	n := p.Load().n
	g.Unlock()
	return n
}

func TestInlined(t *testing.T) {
	if runtime.GOARCH != "amd64" && runtime.GOARCH != "arm64" {
		t.Skip("64-bit atomic operations are calls on some other architectures")
	}
	buildtest.Inlined(t, ".", "(*Reader).Lock", "(*Reader).Unlock", "(*Domain).ReadLock", "Guard.Unlock",
		"(*Domain).Poll", "(*Pointer).Load")
}

// instructions returns the instructions of a function for amd64, in the order of the code.
func instructions(t *testing.T, function string) []string {
	t.Helper()
	asm := buildtest.Disassemble(t, ".", `rcu_test\.`+function+`$`, "GOARCH=amd64")
	var list []string
	for _, line := range strings.Split(asm, "\n")[1:] {
		if f := strings.Split(strings.TrimSpace(line), "\t"); len(f) > 1 {
			list = append(list, f[len(f)-1])
		}
	}
	return list
}

// On amd64 a Reader's announcements are plain stores. The compiler must neither drop them nor move
// them past the section, and must not make them locked instructions.
func TestCodeGeneration(t *testing.T) {
	const (
		load  = `^MOVQ 0\(\w+\), \w+$`
		store = `^MOVQ [A-Z]\w+, 0\(\w+\)$`
		zero  = `^MOVQ \$0x0, 0\(\w+\)$`
	)
	for function, inside := range map[string]int{"probeReader": 2, "probeReaderPlain": 1} {
		t.Run(function, func(t *testing.T) {
			code := instructions(t, function)
			all := strings.Join(code, "\n")
			find := func(re string) (at []int) {
				for i, c := range code {
					if regexp.MustCompile(re).MatchString(c) {
						at = append(at, i)
					}
				}
				return at
			}
			lock, unlock := find(store), find(zero)
			if len(lock) != 1 || len(unlock) != 1 || lock[0] > unlock[0] {
				t.Fatalf("want one store that begins a section, and later one that ends it, and got %v and %v:\n%s", lock, unlock, all)
			}
			// After the store, loads by a register: the record's address and its seen, which Unlock
			// looks at, and what the section is about. Addresses that a register holds already are
			// not loaded again, so there may be one more.
			n := 0
			for _, i := range find(load) {
				if lock[0] < i && i < unlock[0] {
					n++
				}
			}
			if n < inside+2 {
				t.Errorf("%d loads are between the stores of Lock and Unlock, not %d:\n%s", n, inside+2, all)
			}
			if at := find(`XCHG|LOCK|FENCE`); len(at) > 0 {
				t.Errorf("%s in a section:\n%s", code[at[0]], all)
			}
			if c := buildtest.Calls(all); len(c) != 2 || !strings.Contains(c[0], "lockSlow") || !strings.Contains(c[1], "unlockSlow") {
				t.Errorf("calls of %q in a section, not just of the slow paths:\n%s", c, all)
			}
		})
	}
	t.Run("probeGuard", func(t *testing.T) {
		code := instructions(t, "probeGuard")
		all := strings.Join(code, "\n")
		if m := regexp.MustCompile(`(?s)CALL \S+\n.*?MOVQ 0\(\w+\), (\w+)\n.*?MOVQ 0\((\w+)\), \w+\n.*MOVQ \$0x0, 0\(\w+\)\n`).FindStringSubmatch(all); m == nil || m[1] != m[2] {
			t.Errorf("no load of a pointer, and of what it points to, after the call that begins the section and before the store that ends it:\n%s", all)
		}
		if at := regexp.MustCompile(`XCHG|LOCK|FENCE`).FindString(all); at != "" {
			t.Errorf("%s in a section:\n%s", at, all)
		}
		if c := buildtest.Calls(all); len(c) != 2 || !strings.Contains(c[0], "asm.claim") || !strings.Contains(c[1], "unlockSlow") {
			t.Errorf("a section of a Guard calls %q", c)
		}
	})
}

func TestSizes(t *testing.T) {
	if rcu.RecordSize != 64 || rcu.ReaderSize > 48 || rcu.ShardSize != 128 {
		t.Errorf("record %d, Reader %d, shard %d bytes", rcu.RecordSize, rcu.ReaderSize, rcu.ShardSize)
	}
}

func TestAllocations(t *testing.T) {
	d := rcu.New()
	r := d.NewReader()
	var h rcu.Head
	ran := make(chan struct{}, 1)
	fn := func(*rcu.Head) { ran <- struct{}{} }
	var p rcu.Pointer[box]
	p.Store(new(box))
	c := d.Cookie()
	for _, test := range []struct {
		name string
		max  float64
		f    func()
	}{
		{"Reader", 0, func() { r.Lock(); r.Lock(); r.Refresh(); r.Unlock(); r.Unlock() }},
		{"Guard", 0, func() { d.ReadLock().Unlock() }},
		{"Read", 0, func() { d.Read(func() {}) }},
		{"Synchronize", 0, func() { d.Synchronize(bg) }},
		{"SynchronizeExpedited", 0, func() { d.SynchronizeExpedited(bg) }},
		{"Cookie", 0, func() { d.Poll(c); c = d.Cookie() }},
		{"Wait", 0, func() { d.Wait(bg, d.Cookie()) }},
		{"Barrier", 0, func() { d.Barrier(bg) }},
		// A worker that sleeps has a timer.
		{"CallHead and worker", 1, func() { d.CallHead(&h, fn); <-ran }},
	} {
		if n := testing.AllocsPerRun(200, test.f); n > test.max {
			t.Errorf("%s allocates %v times", test.name, n)
		}
	}

	// The callbacks' own, with a worker that is held up so that it adds nothing.
	g := d.ReadLock()
	defer g.Unlock()
	const n = 100
	heads := make([]rcu.Head, n+1)
	i := 0
	noop, free, nothing := func(*rcu.Head) {}, func(*box) {}, func() {}
	d.StartPoll()
	if a := testing.AllocsPerRun(n, func() { d.CallHead(&heads[i], noop); i++ }); a != 0 {
		t.Errorf("CallHead allocates %v times", a)
	}
	if a := testing.AllocsPerRun(n, func() { d.Call(nothing) }); a != 1 {
		t.Errorf("Call allocates %v times, not once", a)
	}
	b := new(box)
	if a := testing.AllocsPerRun(n, func() { rcu.Retire(d, b, free) }); a != 1 {
		t.Errorf("Retire allocates %v times, not once", a)
	}
	runtime.KeepAlive(probes)
}
