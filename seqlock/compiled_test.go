package seqlock

import (
	"fmt"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unsafe"

	"github.com/quiesce-go/quiesce/internal/buildtest"
)

//go:noinline
func loadProbe(v *Value[[8]uint64]) [8]uint64 { return v.Load() }

// Loads of a few words, which leave them at dst.

//go:noinline
func fewProbe8(v *Value[float64], dst *float64) { *dst = v.Load() }

//go:noinline
func fewProbe16(v *Value[[2]uint64], dst *[2]uint64) { *dst = v.Load() }

//go:noinline
func fewProbe24(v *Value[point], dst *point) { v.LoadTo(dst) }

//go:noinline
func fewProbe32(v *Value[[4]int64], dst *[4]int64) { *dst = v.Load() }

//go:noinline
func fewProbeSum(v *Value[[2]uint64]) uint64 { x := v.Load(); return x[0] + x[1] }

var fewProbes = map[string]int{"fewProbe8": 1, "fewProbe16": 2, "fewProbe24": 3, "fewProbe32": 4, "fewProbeSum": 2}

// keepProbes has what is looked at in the binary.
func keepProbes() {
	var v Value[[8]uint64]
	loadProbe(&v)
	fewProbe8(new(Value[float64]), new(float64))
	fewProbe16(new(Value[[2]uint64]), new([2]uint64))
	fewProbe24(new(Value[point]), new(point))
	fewProbe32(new(Value[[4]int64]), new([4]int64))
	fewProbeSum(new(Value[[2]uint64]))
}

func TestCompiled(t *testing.T) {
	keepProbes()
	if runtime.GOARCH != "amd64" && runtime.GOARCH != "arm64" {
		t.Skipf("nothing is promised for %s, where atomic operations may be calls", runtime.GOARCH)
	}
	buildtest.Inlined(t, ".", "(*Value).Load", "(*Value).LoadTo", "(*Value).Store", "(*Value).StoreFrom", "(*Value).Version",
		"(*Value).Load.func1", "(*Value).LoadTo.func1", "(*Latch).Load", "(*Latch).LoadTo",
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

// A routine is what orders the memory accesses of one: steps, each of which is what
// holds one of some texts, in this order. The step that copies T comes in several
// places, one for each range of sizes, with what follows it behind each of them; so
// each way from the start to a return has to have all the steps. Jumps from one place
// to another one lead from before a copy to before a copy.
type routine struct {
	name  string
	steps []step
	copy  int // which of the steps copies T
	n     int // how many instructions do, in all
	ways  int // to a return
}

type step []string

// ways returns the parts of ins that are executed up to each return: what comes before
// the first copy, and what lies between the return before and this one.
func (r routine) split(ins []string) (ways [][]string) {
	start := slices.Index(ins, ins[where(ins, r.steps[r.copy]...)[0]])
	begin := start
	for i := start; i < len(ins); i++ {
		if ins[i] == "RET" {
			ways = append(ways, slices.Concat(ins[:start], ins[begin:i+1]))
			begin = i + 1
		}
	}
	return ways
}

// check returns an error unless way has all of r's steps in their order. All but the
// one that copies are one instruction.
func (r routine) check(way []string) error {
	last := -1
	for i, s := range r.steps {
		at := where(way, s...)
		if slices.Equal(s, r.steps[len(r.steps)-1-i]) && len(at) == 2 { // the first and the last store of seq look alike
			at = at[i/(len(r.steps)-1):][:1]
		}
		if len(at) == 0 || i != r.copy && len(at) > 1 {
			return fmt.Errorf("step %d has %d instructions in\n%s", i, len(at), strings.Join(way, "\n"))
		}
		if at[0] <= last {
			return fmt.Errorf("step %d does not follow step %d in\n%s", i, i-1, strings.Join(way, "\n"))
		}
		last = at[len(at)-1]
	}
	return nil
}

// checkRoutines checks each way through each routine, and that it would be found if one
// of its steps was missing, or came where the one before it is.
func checkRoutines(t *testing.T, all map[string][]string, routines []routine) {
	t.Helper()
	for _, r := range routines {
		ins := all[r.name]
		if n := len(where(ins, r.steps[r.copy]...)); n != r.n {
			t.Errorf("%s has %d instructions that copy T, want %d in\n%s", r.name, n, r.n, strings.Join(ins, "\n"))
			continue
		}
		ways := r.split(ins)
		if len(ways) != r.ways {
			t.Errorf("%s has %d ways to a return, want %d in\n%s", r.name, len(ways), r.ways, strings.Join(ins, "\n"))
		}
		for _, way := range ways {
			if err := r.check(way); err != nil {
				t.Errorf("%s: %v", r.name, err)
				continue
			}
			for i, s := range r.steps {
				at := where(way, s...)
				if i != r.copy {
					if without := slices.Delete(slices.Clone(way), at[0], at[0]+1); r.check(without) == nil {
						t.Errorf("%s without %q is not found", r.name, way[at[0]])
					}
				}
				if i > 0 {
					first, last := where(way, r.steps[i-1]...)[0], at[len(at)-1]
					moved := slices.Insert(slices.Delete(slices.Clone(way), last, last+1), first, way[last])
					if r.check(moved) == nil {
						t.Errorf("%s with %q moved up is not found", r.name, way[last])
					}
				}
			}
		}
	}
}

// checkFew checks the Loads of a few words: of the Value they load seq, each word in turn,
// and seq again; the slow path is their only call but the stack's; and no words are copied
// by way of memory, for which ins has instructions with one of the texts copies. loads gives
// the offsets from the Value that instructions load from.
func checkFew(t *testing.T, all map[string][]string, loads func(ins []string) []int, copies ...string) {
	t.Helper()
	var v Value[few]
	seq, val := int(unsafe.Offsetof(v.seq)), int(unsafe.Offsetof(v.val))
	for name, words := range fewProbes {
		want := []int{seq}
		for i := range words {
			want = append(want, val+8*i)
		}
		want = append(want, seq)
		ins := all[name]
		text := strings.Join(ins, "\n")
		if got := loads(ins); !slices.Equal(got, want) {
			t.Errorf("%s loads from offsets %d in this order, want %d, in\n%s", name, got, want, text)
		}
		calls := where(ins, "CALL")
		if len(calls) != 2 || !strings.Contains(ins[calls[0]], "loadFewSlow") || !strings.Contains(ins[calls[1]], "morestack") {
			t.Errorf("%s calls something else than loadFewSlow, or calls it twice, in\n%s", name, text)
		}
		if at := where(ins, copies...); len(at) > 0 {
			t.Errorf("%s copies by way of memory: %s, in\n%s", name, ins[at[0]], text)
		}
	}
}

var (
	loadAMD64 = regexp.MustCompile(`^MOVQ (0x[0-9a-f]+)\(AX\), `)
	addARM64  = regexp.MustCompile(`^ADD \$(\d+), R0, (R\d+)$`)
	loadARM64 = regexp.MustCompile(`^LDAR \((R\d+)\), (R\d+)$`)
)

func loadsAMD64(ins []string) (offsets []int) {
	for _, in := range ins {
		if m := loadAMD64.FindStringSubmatch(in); m != nil {
			n, _ := strconv.ParseInt(m[1], 0, 0)
			offsets = append(offsets, int(n))
		}
	}
	return offsets
}

// loadsARM64 knows acquiring loads, by way of registers that point to what they load.
func loadsARM64(ins []string) (offsets []int) {
	points := map[string]int{}
	for _, in := range ins {
		if m := addARM64.FindStringSubmatch(in); m != nil {
			points[m[2]], _ = strconv.Atoi(m[1])
		} else if m := loadARM64.FindStringSubmatch(in); m != nil {
			offsets = append(offsets, points[m[1]])
			delete(points, m[2])
		}
	}
	return offsets
}

func TestCompiled_AMD64(t *testing.T) {
	all := instructions(t, "amd64", "loadR", "storeR", "publish", "loadLatchR", "writeLatch", "loadProbe",
		"fewProbe8", "fewProbe16", "fewProbe24", "fewProbe32", "fewProbeSum")
	// The routines push nothing. An objdump that does not know how long a
	// VZEROUPPER is finds a push behind it, and nonsense from there on.
	if len(where(all["loadR"], "PUSHQ")) > 0 {
		t.Skipf("the objdump of %s loses its place behind VZEROUPPER", runtime.Version())
	}
	fences := []string{"LOCK", "XCHG", "MFENCE", "LFENCE", "SFENCE", "MOVNT", "REP"}
	for _, name := range []string{"loadR", "publish", "loadLatchR", "writeLatch", "loadProbe",
		"fewProbe8", "fewProbe16", "fewProbe24", "fewProbe32", "fewProbeSum"} {
		if at := where(all[name], fences...); len(at) > 0 {
			t.Errorf("%s has a locked instruction, a fence, or a store that TSO does not order: %s", name, all[name][at[0]])
		}
	}
	if at := where(all["storeR"], fences...); len(at) != 1 {
		t.Errorf("storeR has %d locked instructions and fences, want 1", len(at))
	}
	if calls := where(all["loadProbe"], "CALL"); len(calls) != 2 { // loadR and morestack
		t.Errorf("Load becomes %d calls, want loadR's and the stack check's", len(calls))
	}
	checkFew(t, all, loadsAMD64, "MOVUPS")

	// seq is at 16(AX), for storeR 16(BX), a Latch's at 8(AX). T is copied from R9 to
	// R10. An objdump that does not know VMOVUPS finds an ADCB in the loads, an ADCL in
	// the stores.
	from, to := step{"(R9)", "ADCB"}, step{"(R10)", "ADCL"}
	const outs, ins = 22, 29
	checkRoutines(t, all, []routine{
		{"loadR", []step{{"MOVQ 0x10(AX), DX"}, from, {"XORQ 0x10(AX), DX"}, {"TESTQ $-0x3, DX"}}, 1, outs, 9},
		{"storeR", []step{{"LOCK CMPXCHGQ DX, 0x10(BX)"}, to, {"MOVQ DX, 0x10(BX)"}}, 1, ins, 9},
		{"publish", []step{{"MOVQ DX, 0x10(AX)"}, to, {"MOVQ DX, 0x10(AX)"}}, 1, ins, 9},
		{"loadLatchR", []step{{"MOVQ 0x8(AX), DX"}, from, {"MOVQ 0x8(AX), R11"}, {"CMPQ R11, $0x6"}}, 1, outs, 9},
		{"writeLatch", []step{{"MOVQ DX, 0x8(AX)"}, to, {"MOVQ DX, 0x8(AX)"}}, 1, ins, 9},
	})
}

// TestCompiled_ARM64 looks for the order that words_arm64.s describes. No test
// run on another processor can: emulators keep loads and stores in order.
func TestCompiled_ARM64(t *testing.T) {
	all := instructions(t, "arm64", "loadR", "storeR", "publish", "loadLatchR", "writeLatch", "tryLoadLatch", "writeLatchGeneric",
		"fewProbe8", "fewProbe16", "fewProbe24", "fewProbe32", "fewProbeSum")
	// seq is at (R8). T is copied from (R6) to (R7), or ends at R11 and R12, by 12
	// instructions each way.
	from, to := step{"(R6), ", "(R11), "}, step{", (R7)", "(R12)", ", 32(R7)"}
	ishld, ishst := step{"DMB $9"}, step{"DMB $10"}
	checkRoutines(t, all, []routine{
		{"loadR", []step{{"LDAR (R8)"}, from, ishld, {"MOVD (R8)"}, {"TST $-3"}}, 1, 12, 1},
		// The exclusive store is LL/SC, which every arm64 has.
		{"storeR", []step{{"LDAXR (R8)"}, {"STXR R13, (R8)"}, ishst, to, {"STLR R9, (R8)"}}, 3, 12, 1},
		{"publish", []step{{"MOVD R13, (R8)"}, ishst, to, {"STLR R9, (R8)"}}, 2, 12, 1},
		{"loadLatchR", []step{{"LDAR (R8)"}, from, ishld, {"MOVD (R8)"}, {"CMP $6, R13"}}, 1, 12, 1},
		{"writeLatch", []step{{"MOVD R13, (R8)"}, ishst, to, {"STLR R9, (R8)"}}, 2, 12, 1},
	})
	checkFew(t, all, loadsARM64, "FMOVQ", "FLDPQ")

	// The portable ones have an LDAR or STLR for seq, two for T's words (in the
	// loop, and the last), and one for seq.
	if n := len(where(all["tryLoadLatch"], "LDAR")); n != 4 {
		t.Errorf("tryLoadLatch has %d acquiring loads, want 4 in\n%s", n, strings.Join(all["tryLoadLatch"], "\n"))
	}
	if n := len(where(all["writeLatchGeneric"], "STLR")); n != 4 {
		t.Errorf("writeLatchGeneric has %d releasing stores, want 4 in\n%s", n, strings.Join(all["writeLatchGeneric"], "\n"))
	}
}
