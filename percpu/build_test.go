package percpu_test

import (
	"math/bits"
	"os/exec"
	"runtime"
	"strings"
	"testing"

	"github.com/quiesce-go/quiesce/internal/buildtest"
	"github.com/quiesce-go/quiesce/percpu"
)

//go:noinline
func probeAdd(c *percpu.Counter, delta int64) { c.Add(delta) }

//go:noinline
func probeInc(c *percpu.Counter) { c.Inc() }

//go:noinline
func probeDec(c *percpu.Counter) { c.Dec() }

// TestCounter_Compiled: Add, Inc and Dec are one call each where they are used,
// to the assembly and not to a method on the way.
func TestCounter_Compiled(t *testing.T) {
	if runtime.GOARCH != "amd64" && runtime.GOARCH != "arm64" || runtime.GOOS != "linux" {
		t.Skip("no assembly on " + runtime.GOOS + "/" + runtime.GOARCH)
	}
	buildtest.Inlined(t, ".", "(*Counter).Add", "(*Counter).Inc", "(*Counter).Dec")
	var c percpu.Counter
	probeAdd(&c, 2)
	probeInc(&c)
	probeDec(&c)
	all := buildtest.Disassemble(t, ".", `percpu_test\.probe(Add|Inc|Dec)$`)
	functions := strings.Split(all, "TEXT ")[1:]
	if len(functions) != 3 {
		t.Errorf("%d functions, want 3", len(functions))
	}
	for _, code := range functions {
		calls := buildtest.Calls(code)
		if len(calls) != 1 || !strings.Contains(calls[0], "asm.blockAdd") {
			t.Errorf("it calls %q, want asm.blockAdd alone\n%s", calls, code)
		}
	}
}

// TestLocal_Compiled: what Do defers gives the T back without a further call.
func TestLocal_Compiled(t *testing.T) {
	if bits.UintSize == 32 {
		t.Skip("an atomic store of 64 bits is a call on 32-bit machines")
	}
	buildtest.Inlined(t, ".", "(*localLock).unlock")
}

// TestVet_Copied: go vet tells of each copy in testdata/copied.
func TestVet_Copied(t *testing.T) {
	path, err := exec.LookPath("go")
	if err != nil {
		t.Skip("needs the go command: ", err)
	}
	out, err := exec.Command(path, "vet", "./testdata/copied").CombinedOutput()
	if err == nil {
		t.Fatal("go vet has nothing to say")
	}
	for _, what := range []string{"Counter", "Words", "BatchCounter", "Local[int]", "Pool[int]", "Ring", "Ref", "RWMutex"} {
		if !strings.Contains(string(out), "assignment copies lock value to *a: github.com/quiesce-go/quiesce/percpu."+what) {
			t.Errorf("go vet does not find the copy of a %s:\n%s", what, out)
		}
	}
}
