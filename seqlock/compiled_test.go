package seqlock

import (
	"runtime"
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
	buildtest.Inlined(t, ".", "(*Value).Load", "(*Value).LoadTo", "(*Value).Store", "(*Value).Version",
		"(*Count).Begin", "(*Count).TryBegin", "(*Count).Retry", "(*Lock).TryBegin", "(*Lock).Retry")
}

// instructions returns the instructions of the named routines, built for
// goarch, each with its operands and without its address.
func instructions(t *testing.T, goarch string, names ...string) map[string][]string {
	t.Helper()
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
		case len(f) > 3 && f[3] != "?": // file:line address bytes instruction; padding is "?"
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
	return ins
}

// where returns the places in ins of what starts with one of the prefixes.
func where(ins []string, prefixes ...string) (at []int) {
	for i, in := range ins {
		for _, p := range prefixes {
			if strings.HasPrefix(in, p) {
				at = append(at, i)
			}
		}
	}
	return at
}

// inOrder fails t unless each group of places is of the size given, or not
// empty if that is -1, and wholly before the next one.
func inOrder(t *testing.T, ins []string, sizes []int, groups ...[]int) {
	t.Helper()
	for i, g := range groups {
		if len(g) == 0 || sizes[i] >= 0 && len(g) != sizes[i] {
			t.Errorf("group %d has %d instructions, want %d (-1: some) in\n%s", i, len(g), sizes[i], strings.Join(ins, "\n"))
			return
		}
		if i > 0 && g[0] <= groups[i-1][len(groups[i-1])-1] {
			t.Errorf("group %d does not follow group %d in\n%s", i, i-1, strings.Join(ins, "\n"))
		}
	}
}

func TestCompiled_AMD64(t *testing.T) {
	ins := instructions(t, "amd64", "load", "store", "publish", "loadProbe")
	fences := []string{"LOCK", "XCHG", "MFENCE", "LFENCE", "SFENCE", "MOVNT", "REP"}
	for _, name := range []string{"load", "publish", "loadProbe"} {
		if at := where(ins[name], fences...); len(at) > 0 {
			t.Errorf("%s has a locked instruction, a fence, or a store that TSO does not order: %s", name, ins[name][at[0]])
		}
	}
	if at := where(ins["store"], fences...); len(at) != 1 || ins["store"][at[0]] != "LOCK CMPXCHGQ DX, 0x10(BX)" {
		t.Errorf("store has not one LOCK CMPXCHGQ and nothing else of the kind:\n%s", strings.Join(ins["store"], "\n"))
	}
	if calls := where(ins["loadProbe"], "CALL"); len(calls) != 2 { // load and morestack
		t.Errorf("Load becomes %d calls, want load's and the stack check's", len(calls))
	}
}

// TestCompiled_ARM64 looks for the order that words_arm64.s describes. No test
// run on another processor can: emulators keep loads and stores in order.
func TestCompiled_ARM64(t *testing.T) {
	all := instructions(t, "arm64", "load", "store", "publish")
	loads := []string{"FLDPQ", "FMOVQ (R1)", "FMOVQ -16(R6)", "MOVD (R1)", "MOVD -8(R6)", "MOVWU", "MOVBU", "LDURHW"}
	stores := []string{"FSTPQ", "FMOVQ F0, (R2)", "FMOVQ F1, -16(R7)", "MOVD R8, (R2)", "MOVD R9, -8(R7)", "MOVW R8, (R2)", "MOVW R9", "MOVB R8", "MOVH R9"}

	ins := all["load"]
	inOrder(t, ins, []int{1, 12, 1, 1, 1},
		where(ins, "LDAR (R4)"), where(ins, loads...), where(ins, "DMB $9"), where(ins, "MOVD (R4)"), where(ins, "TST $-3"))

	// The exclusive store is LL/SC, which every arm64 has.
	ins = all["store"]
	inOrder(t, ins, []int{1, 1, 1, 12, 1},
		where(ins, "LDAXR (R4)"), where(ins, "STXR R8, (R4)"), where(ins, "DMB $10"), where(ins, stores...), where(ins, "STLR R5, (R4)"))

	ins = all["publish"]
	inOrder(t, ins, []int{1, 1, 12, 1},
		where(ins, "MOVD R8, (R4)"), where(ins, "DMB $10"), where(ins, stores...), where(ins, "STLR R5, (R4)"))
}
