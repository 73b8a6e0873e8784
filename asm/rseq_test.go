//go:build linux && !android && (amd64 || arm64) && gc && !purego && !race && !go1.28

package asm

import (
	"bytes"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"unsafe"

	"github.com/quiesce-go/quiesce/internal/buildtest"
	"github.com/quiesce-go/quiesce/internal/storm"
)

func TestRSEQ(t *testing.T) {
	info, err := RSEQ()
	if err != nil {
		t.Skip(err)
	}
	owner := "quiesce"
	if isCgo {
		owner = "glibc"
	}
	if info.Owner != owner || info.FeatureSize < 20 || (info.Threads > 0) == isCgo {
		t.Errorf("%+v; want the owner %q", info, owner)
	}
	t.Logf("%+v", info)
}

// TestFindSequences reads back what the descriptors say of the code.
func TestFindSequences(t *testing.T) {
	decide()
	for _, s := range sequences() {
		code, base := s.code[:], uint64(uintptr(unsafe.Pointer(s.code)))
		start, abort := s.cs.start-base, s.cs.abort-base
		end := start + s.cs.length
		switch {
		case s.cs.version != 0 || s.cs.flags != 0:
			t.Errorf("%s: version %d, flags %d", s.name, s.cs.version, s.cs.flags)
		case start >= end || end >= abort || abort >= sequenceLen:
			t.Errorf("%s: from %d to %d, abort at %d", s.name, start, end, abort)
		case !bytes.HasSuffix(code[:start+startInside], startBytes):
			t.Errorf("%s: begins behind % x", s.name, code[:start])
		case !bytes.HasSuffix(code[:end], s.commit):
			t.Errorf("%s: ends behind % x", s.name, code[:end])
		case !bytes.HasSuffix(code[:abort], signatureBytes):
			t.Errorf("%s: the abort handler is behind % x", s.name, code[:abort])
		case bytes.Count(code[:abort], startBytes) != 1 || bytes.Count(code[:end], s.commit) != 1:
			t.Errorf("%s: what marks the sequence is there more than once: % x", s.name, code[:abort])
		case uintptr(unsafe.Pointer(s.cs))%32 != 0:
			t.Errorf("%s: the descriptor at %p is not aligned", s.name, s.cs)
		}
	}
}

// TestFindSequences_Moved: code that does not look as it should is refused, and
// not run with a descriptor that is off by some bytes.
func TestFindSequences_Moved(t *testing.T) {
	for _, s := range sequences() {
		d, ok := describe(s.code[:], s.commit)
		if !ok {
			t.Fatalf("%s is not found", s.name)
		}
		end := d.start + d.length
		for name, at := range map[string]uint64{"start": d.start + startInside - 1, "commit": end - 1, "signature": d.abort - 1} {
			code := *s.code
			code[at] ^= 0x80
			if got, ok := describe(code[:d.abort], s.commit); ok {
				t.Errorf("%s with another byte in its %s: %+v", s.name, name, got)
			}
		}
		for name, code := range map[string][]byte{
			"cut before the signature": s.code[:d.abort-1],
			"empty":                    {},
			"signature first":          append(bytes.Clone(signatureBytes), s.code[:d.abort-1]...),
		} {
			if got, ok := describe(code, s.commit); ok {
				t.Errorf("%s, %s: %+v", s.name, name, got)
			}
		}
		moved := append(make([]byte, 4), s.code[:d.abort]...)
		if got, ok := describe(moved, s.commit); !ok || got.start != d.start+4 || got.length != d.length || got.abort != d.abort+4 {
			t.Errorf("%s, four bytes further on: %+v, %v; it was %+v", s.name, got, ok, d)
		}
	}
}

// TestSequences_Compiled looks at the instructions inside the sequences: the
// descriptors' ends are ends of instructions, and nothing is stored, called or
// locked before the commit but what may be left behind.
func TestSequences_Compiled(t *testing.T) {
	decide()
	var names []string
	for _, s := range sequences() {
		names = append(names, s.name)
	}
	all := buildtest.Disassemble(t, ".", `quiesce/asm\.(`+strings.Join(names, "|")+`)(\.abi0)?$`)
	for _, s := range sequences() {
		_, text, _ := strings.Cut(all, "/asm."+s.name+".abi0(SB)")
		text, _, _ = strings.Cut(text, "TEXT ")
		base := uint64(uintptr(unsafe.Pointer(s.code)))
		start, abort := s.cs.start-base, s.cs.abort-base
		end := start + s.cs.length
		at := map[uint64]string{}
		var first uint64
		for _, m := range objdumpLine.FindAllStringSubmatch(text, -1) {
			address, err := strconv.ParseUint(m[1], 0, 64)
			if err != nil {
				t.Fatal(err)
			}
			if len(at) == 0 {
				first = address
			}
			at[address-first] = m[2]
		}
		for name, offset := range map[string]uint64{"start": start, "end": end, "abort": abort} {
			if at[offset] == "" {
				t.Errorf("%s: there is no instruction at its %s, %#x\n%s", s.name, name, offset, text)
			}
		}
		if !strings.HasPrefix(at[end], "RET") && !strings.HasSuffix(at[end], ", AX") && !strings.Contains(at[end], "ret+") && !strings.Contains(at[end], "(SP)") && !strings.Contains(at[end], "(RSP)") {
			t.Errorf("%s: behind the commit is %s", s.name, at[end])
		}
		stores := 0
		for offset := start; offset < end; offset++ {
			if storeLine.MatchString(at[offset]) {
				stores++
			}
			if forbiddenLine.MatchString(at[offset]) {
				t.Errorf("%s: %s in a sequence", s.name, at[offset])
			}
		}
		want := 1
		switch s.name {
		case "blockSwapTwo", "blockPush":
			want = 2
		case nameLogWrite:
			want = 6 // the tail that was seen, time, event, payload twice
		}
		if stores != want {
			t.Errorf("%s: %d stores in the sequence, want %d\n%s", s.name, stores, want, text)
		}
	}
}

var (
	objdumpLine = regexp.MustCompile(`(?m)^\s+\S+:\d+\s+(0x[0-9a-f]+)\s+[0-9a-f]+\s+(.+?)\s*$`)
	// An instruction whose last operand is in memory: on amd64 as objdump has it,
	// on arm64 all that store.
	storeLine     = regexp.MustCompile(`^((MOV|ADD|SUB|INC|DEC|XCHG|AND|OR)[A-Z]* .*\)$|STLR|STP|MOV[A-Z]+ [A-Z0-9]+, .*\(R)`)
	forbiddenLine = regexp.MustCompile(`CALL|LOCK|XCHG|SYSCALL|SVC|LDAXR|STXR|^BL `)
)

// TestThreads: the areas of threads that have ended are used again, and the
// threads lose nothing.
func TestThreads(t *testing.T) {
	if _, err := RSEQ(); err != nil {
		t.Skip(err)
	}
	var b Block
	n := storm.Size(4_000)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range n / 4 {
				done := make(chan struct{})
				go func() {
					defer close(done)
					runtime.LockOSThread()
					for range 100 {
						b.Add(0, 1)
					}
				}()
				<-done
			}
		})
	}
	wg.Wait()
	if got, want := b.Sum(0), int64(n/4*4*100); got != want {
		t.Errorf("%d adds were counted as %d", want, got)
	}
	info, _ := RSEQ()
	if info.Threads > 1024 {
		t.Errorf("%d areas in use after %d threads have ended", info.Threads, n)
	}
	areas.Lock()
	all := len(areas.all)
	areas.Unlock()
	t.Logf("%d threads, %d areas, %d in use", n, all, info.Threads)
}

// TestColumn_Fallback: a thread whose CPU number is out of range has a column of
// its own kind, and its adds count.
func TestColumn_Fallback(t *testing.T) {
	if _, err := RSEQ(); err != nil {
		t.Skip(err)
	}
	setRSEQColumns(0) // as if each number were too high
	defer setRSEQColumns(uint32(columns))
	var b Block
	for range 100 {
		b.Add(0, 1)
		col := Column()
		if col < columns || col >= ColumnCount() {
			t.Fatalf("column %d of %d", col, ColumnCount())
		}
		if old := b.Load(col, 0); !b.CompareAndSwap(col, 0, old, old+1) {
			t.Fatal("CompareAndSwap in a column of the shared tier failed")
		}
	}
	if b.Sum(0) != 200 {
		t.Error(b.Sum(0))
	}
	if c := CPU(); c < 0 || c >= columns {
		t.Errorf("CPU() = %d", c)
	}
}
