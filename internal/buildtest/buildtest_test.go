package buildtest

import (
	"fmt"
	"os/exec"
	"runtime"
	"strings"
	"testing"
)

type pair[T any] struct{ a, b T }

func (p *pair[T]) first() T { return p.a }

func small(x int) int { return x + 1 }

// deferring is what the compiler never inlines.
func deferring(x int) (sum int) {
	defer func() { sum++ }()
	return small(x)
}

var _ = []any{small, deferring} // only the compiler looks at them

//go:noinline
func probe(p *pair[uint64]) uint64 { return p.first() }

func TestInlined(t *testing.T) {
	Inlined(t, ".", "small", "(*pair).first")
}

// TestInlined_Fails is what makes the helper worth its name: it has to fail,
// and say why, for what is not inlined and for what does not exist.
func TestInlined_Fails(t *testing.T) {
	for name, want := range map[string]string{
		"deferring":  "cannot inline deferring: unhandled op DEFER",
		"probe":      "cannot inline probe: marked go:noinline",
		"nosuchfunc": "says nothing about inlining nosuchfunc",
	} {
		r := record(t, func(tb testing.TB) { Inlined(tb, ".", "small", name) })
		if r.skipped {
			t.Skip(r.log)
		}
		if !r.failed || !strings.Contains(r.log, want) || strings.Contains(r.log, "small") {
			t.Errorf("Inlined(%q): failed=%v, log:\n%s\nwant a failure with %q and nothing on small", name, r.failed, r.log, want)
		}
	}
	if r := record(t, func(tb testing.TB) { Inlined(tb, "./nosuchdir", "small") }); !r.failed && !r.skipped {
		t.Error("Inlined of a package that does not exist passed")
	}
}

func TestDisassemble(t *testing.T) {
	if got := probe(&pair[uint64]{a: 1, b: 2}); got != 1 { // keeps probe in the binary
		t.Errorf("probe = %d, want 1", got)
	}
	code := Disassemble(t, ".", `buildtest\.probe$`)
	if n := strings.Count(code, "TEXT "); n != 1 {
		t.Errorf("%d symbols, want 1:\n%s", n, code)
	}
	if strings.Contains(code, "first") {
		t.Errorf("probe calls first, which should be inlined:\n%s", code)
	}
}

func TestDisassemble_OtherPlatform(t *testing.T) {
	goarch, want := "arm64", "MOVD (R0), R0"
	if runtime.GOARCH == goarch {
		goarch, want = "amd64", "MOVQ 0(AX), AX"
	}
	if code := Disassemble(t, ".", `buildtest\.probe$`, "GOOS=linux", "GOARCH="+goarch); !strings.Contains(code, want) {
		t.Errorf("GOARCH=%s: no %q in:\n%s", goarch, want, code)
	}
}

func TestDisassemble_Fails(t *testing.T) {
	for want, f := range map[string]func(tb testing.TB){
		"no symbol of the test binary": func(tb testing.TB) { Disassemble(tb, ".", `buildtest\.nosuchfunc$`) },
		"nosuchdir":                    func(tb testing.TB) { Disassemble(tb, "./nosuchdir", `.`) },
		"not of the form NAME=value":   func(tb testing.TB) { Disassemble(tb, ".", `.`, "purego") },
		"unsupported GOOS/GOARCH":      func(tb testing.TB) { Disassemble(tb, ".", `.`, "GOARCH=pdp11") },
	} {
		r := record(t, f)
		if r.skipped {
			t.Skip(r.log)
		}
		if !r.failed || !strings.Contains(r.log, want) {
			t.Errorf("failed=%v, log %q, want a failure with %q", r.failed, r.log, want)
		}
	}
}

func TestSkipsWithoutGo(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	if _, err := exec.LookPath("go"); err == nil {
		t.Fatal("found a go command in an empty directory")
	}
	r := record(t, func(tb testing.TB) { Inlined(tb, ".", "small") })
	if !r.skipped || !strings.Contains(r.log, "needs the go command") {
		t.Errorf("skipped=%v, log %q, want a skip that says why", r.skipped, r.log)
	}
}

func TestParseInlining(t *testing.T) {
	got := parseInlining(`# example.org/p
./a.go:4:6: can inline (*V[go.shape.map[int]string]).Load with cost 3 as: method(*V[go.shape.int]) func() { return }
./a.go:4:6: can inline p.(*V[go.shape.float64]).Load with cost 3 as: method(*p.V[go.shape.float64]) func() { return }
./a.go:5:6: cannot inline Map[go.shape.int64]: function too complex: cost 85 exceeds budget 80
./a.go:5:6: can inline Map[go.shape.int32] with cost 8 as: func() { return }
./a.go:7:6: can inline C.Get with cost 7 as: method(C) func() int64 { return 1 }
./a.go:8:6: inlining call to C.Get
`)
	want := map[string]string{
		"(*V).Load": "",
		"Map":       "cannot inline Map[go.shape.int64]: function too complex: cost 85 exceeds budget 80",
		"C.Get":     "",
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// recorder is a testing.TB that keeps what the helper reports to itself.
type recorder struct {
	testing.TB
	failed, skipped bool
	log             string
}

// record runs f, which may end early as a test may, and tells what it reported.
func record(t *testing.T, f func(testing.TB)) *recorder {
	r := &recorder{TB: t}
	done := make(chan struct{})
	go func() {
		defer close(done)
		f(r)
	}()
	<-done
	return r
}

func (r *recorder) Errorf(format string, args ...any) {
	r.failed = true
	r.log += fmt.Sprintf(format, args...) + "\n"
}

func (r *recorder) Fatalf(format string, args ...any) {
	r.Errorf(format, args...)
	runtime.Goexit()
}

func (r *recorder) Skipf(format string, args ...any) {
	r.skipped = true
	r.log += fmt.Sprintf(format, args...) + "\n"
	runtime.Goexit()
}

func TestCalls(t *testing.T) {
	code := `TEXT p.f(SB) f.go
	  f.go:1	0x1	00	MOVQ p.fn(SB), DX
	  f.go:1	0x2	00	MOVQ 0(DX), SI
	  f.go:1	0x3	00	CALL SI
	  f.go:2	0x4	00	CALL p.g(SB)
	  f.go:3	0x5	00	CALL runtime.morestack_noctxt.abi0(SB)
	  f.go:4	0x6	00	MOVD p.fn2(SB), R26
	  f.go:4	0x7	00	CALL (R0)
`
	if got, want := fmt.Sprint(Calls(code)), "[p.fn p.g(SB) p.fn2]"; got != want {
		t.Errorf("Calls is %s, want %s", got, want)
	}
}
