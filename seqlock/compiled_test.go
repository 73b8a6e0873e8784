package seqlock

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/quiesce-go/quiesce/internal/buildtest"
)

//go:noinline
func loadProbe(v *Value[[8]uint64]) [8]uint64 { return v.Load() }

func TestCompiled(t *testing.T) {
	var v Value[[8]uint64]
	loadProbe(&v) // keeps it in the binary
	if runtime.GOARCH != "amd64" && runtime.GOARCH != "arm64" {
		t.Skipf("nothing is promised for %s, where atomic operations may be calls", runtime.GOARCH)
	}
	buildtest.Inlined(t, ".", "(*Value).Load", "(*Value).LoadTo", "(*Value).Store", "(*Value).StoreFrom", "(*Value).Version",
		"(*Latch).Load", "(*Latch).LoadTo",
		"(*Count).Begin", "(*Count).TryBegin", "(*Count).Retry", "(*Lock).TryBegin", "(*Lock).Retry")
}

// disassembled has what instructions has found, by goarch: -count and -cpu run
// the tests again, and there is nothing new to see.
var disassembled = map[string]map[string][]string{}

// instructions returns the instructions of the named routines, built for
// goarch, each with its operands and without its address.
func instructions(t *testing.T, goarch string, names ...string) map[string][]string {
	t.Helper()
	if ins, ok := disassembled[goarch]; ok {
		return ins
	}
	code := buildtest.Disassemble(t, ".", `seqlock\.(`+strings.Join(names, "|")+`)(\.abi0)?$`,
		"GOARCH="+goarch, "GOOS=linux", "CGO_ENABLED=0")
	ins := map[string][]string{}
	var name string
	for line := range strings.Lines(code) {
		f := strings.Fields(line)
		switch {
		case len(f) > 1 && f[0] == "TEXT": // TEXT path.name.abi0(SB) file
			_, name, _ = strings.Cut(f[1], "seqlock.")
			name = strings.TrimSuffix(name, "(SB)")
		case len(f) > 3 && f[3] != "?" && f[3] != "LEAQ":
			// file:line address bytes instruction; padding is "?", and LEAQ
			// names memory but leaves it alone.
			ins[name] = append(ins[name], strings.Join(f[3:], " "))
		}
	}
	for _, name := range names {
		// What has ABI0 has a wrapper of its plain name too.
		if asm, ok := ins[name+".abi0"]; ok {
			ins[name] = asm
		}
		if len(ins[name]) == 0 {
			t.Fatalf("no %s in\n%s", name, code)
		}
	}
	disassembled[goarch] = ins
	return ins
}

// where returns the places in ins of what has one of the parts.
func where(ins []string, parts ...string) (at []int) {
	for i, in := range ins {
		for _, p := range parts {
			if strings.Contains(in, p) {
				at = append(at, i)
				break
			}
		}
	}
	return at
}

// inOrder returns an error unless each group of places has the size given and lies
// before the next one. The routines branch and loop only while they copy, which
// is one of the groups, so the order of places is the order of execution.
func inOrder(ins []string, sizes []int, groups ...[]int) error {
	for i, g := range groups {
		if len(g) != sizes[i] {
			return fmt.Errorf("group %d has %d instructions, want %d in\n%s", i, len(g), sizes[i], strings.Join(ins, "\n"))
		}
		if i > 0 && g[0] <= groups[i-1][len(groups[i-1])-1] {
			return fmt.Errorf("group %d does not follow group %d in\n%s", i, i-1, strings.Join(ins, "\n"))
		}
	}
	return nil
}

// A routine is what orders the memory accesses of one: steps, each a group of
// instructions that hold one of some texts, in this order.
type routine struct {
	name  string
	steps []step
}

type step struct {
	n     int
	texts []string
}

func (r routine) check(ins []string) error {
	var sizes []int
	var groups [][]int
	for i, s := range r.steps {
		at := where(ins, s.texts...)
		// Both stores of seq in publish and writeLatch look alike: the first step is the first one.
		if n := len(r.steps) - 1; len(at) == 2 && slices.Equal(r.steps[0].texts, r.steps[n].texts) {
			at = at[i/n : i/n+1]
		}
		sizes, groups = append(sizes, s.n), append(groups, at)
	}
	return inOrder(ins, sizes, groups...)
}

// checkRoutines checks each routine, and that it would be found if one of its steps
// was missing, or came where the one before it is.
func checkRoutines(t *testing.T, all map[string][]string, routines []routine) {
	t.Helper()
	for _, r := range routines {
		ins := all[r.name]
		if err := r.check(ins); err != nil {
			t.Errorf("%s: %v", r.name, err)
			continue
		}
		for i, s := range r.steps {
			at := where(ins, s.texts...)[0]
			without := slices.Delete(slices.Clone(ins), at, at+1)
			if r.check(without) == nil {
				t.Errorf("%s without %q is not found", r.name, ins[at])
			}
			if i > 0 {
				first := where(ins, r.steps[i-1].texts...)[0]
				at = where(ins, s.texts...)[len(where(ins, s.texts...))-1]
				moved := slices.Insert(slices.Delete(slices.Clone(ins), at, at+1), first, ins[at])
				if r.check(moved) == nil {
					t.Errorf("%s with %q moved up is not found", r.name, ins[at])
				}
			}
		}
	}
}

func TestCompiled_AMD64(t *testing.T) {
	all := instructions(t, "amd64", "load", "store", "publish", "loadLatch", "writeLatch", "loadProbe")
	// The routines push nothing. An objdump that does not know how long a
	// VZEROUPPER is finds a push behind it, and nonsense from there on.
	if len(where(all["load"], "PUSHQ")) > 0 {
		t.Skipf("the objdump of %s loses its place behind VZEROUPPER", runtime.Version())
	}
	fences := []string{"LOCK", "XCHG", "MFENCE", "LFENCE", "SFENCE", "MOVNT", "REP"}
	for _, name := range []string{"load", "publish", "loadLatch", "writeLatch", "loadProbe"} {
		if at := where(all[name], fences...); len(at) > 0 {
			t.Errorf("%s has a locked instruction, a fence, or a store that TSO does not order: %s", name, all[name][at[0]])
		}
	}
	if at := where(all["store"], fences...); len(at) != 1 {
		t.Errorf("store has %d locked instructions and fences, want 1", len(at))
	}
	if calls := where(all["loadProbe"], "CALL"); len(calls) != 2 { // load and morestack
		t.Errorf("Load becomes %d calls, want load's and the stack check's", len(calls))
	}

	// seq is at 16(BX), a Latch's at 8(BX). T is copied from SI to DI, by 21
	// instructions each way.
	from, to := step{21, []string{"(SI)"}}, step{21, []string{"(DI)"}}
	one := func(text string) step { return step{1, []string{text}} }
	checkRoutines(t, all, []routine{
		{"load", []step{one("MOVQ 0x10(BX), DX"), from, one("XORQ 0x10(BX), DX")}},
		{"store", []step{one("LOCK CMPXCHGQ DX, 0x10(BX)"), to, one("MOVQ DX, 0x10(BX)")}},
		{"publish", []step{one("MOVQ DX, 0x10(BX)"), to, one("MOVQ DX, 0x10(BX)")}},
		{"loadLatch", []step{one("MOVQ 0x8(BX), DX"), from, one("MOVQ 0x8(BX), AX")}},
		{"writeLatch", []step{one("MOVQ DX, 0x8(BX)"), to, one("MOVQ DX, 0x8(BX)")}},
	})
}

// TestCompiled_ARM64 looks for the order that words_arm64.s describes. No test
// run on another processor can: emulators keep loads and stores in order.
func TestCompiled_ARM64(t *testing.T) {
	all := instructions(t, "arm64", "load", "store", "publish", "loadLatch", "writeLatch", "tryLoadLatch", "writeLatchGeneric")
	// seq is at (R4). T is copied from (R1) to (R2), or ends at R6 and R7, by 12
	// instructions each way.
	from, to := step{12, []string{"(R1), ", "(R6), "}}, step{12, []string{", (R2)", "(R7)", ", 32(R2)"}}
	one := func(text string) step { return step{1, []string{text}} }
	ishld, ishst := one("DMB $9"), one("DMB $10")
	checkRoutines(t, all, []routine{
		{"load", []step{one("LDAR (R4)"), from, ishld, one("MOVD (R4)"), one("TST $-3")}},
		// The exclusive store is LL/SC, which every arm64 has.
		{"store", []step{one("LDAXR (R4)"), one("STXR R8, (R4)"), ishst, to, one("STLR R5, (R4)")}},
		{"publish", []step{one("MOVD R8, (R4)"), ishst, to, one("STLR R5, (R4)")}},
		{"loadLatch", []step{one("LDAR (R4)"), from, ishld, one("MOVD (R4)"), one("CMP $6, R8")}},
		{"writeLatch", []step{one("MOVD R8, (R4)"), ishst, to, one("STLR R5, (R4)")}},
	})

	// The portable ones have an LDAR or STLR for seq, two for T's words (in the
	// loop, and the last), and one for seq.
	if n := len(where(all["tryLoadLatch"], "LDAR")); n != 4 {
		t.Errorf("tryLoadLatch has %d acquiring loads, want 4 in\n%s", n, strings.Join(all["tryLoadLatch"], "\n"))
	}
	if n := len(where(all["writeLatchGeneric"], "STLR")); n != 4 {
		t.Errorf("writeLatchGeneric has %d releasing stores, want 4 in\n%s", n, strings.Join(all["writeLatchGeneric"], "\n"))
	}
}
