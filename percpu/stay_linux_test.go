package percpu_test

import (
	"runtime"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/quiesce-go/quiesce/internal/storm"
	"github.com/quiesce-go/quiesce/internal/tier"
	"github.com/quiesce-go/quiesce/percpu"
)

// stay runs f on a thread that keeps its CPU, and on a P that does too as far as
// goes.
func stay(t *testing.T, f func()) {
	t.Helper()
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(0, &set); err != nil {
		t.Fatal(err)
	}
	for cpu := range len(set) * 64 {
		if set.IsSet(cpu) {
			onCPU(t, cpu, f)
			return
		}
	}
}

// onCPU runs f on a thread of its own that may run on this CPU only.
func onCPU(t *testing.T, cpu int, f func()) {
	t.Helper()
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // never undone: the thread ends, and its CPU set with it
		var set unix.CPUSet
		set.Set(cpu)
		err := unix.SchedSetaffinity(0, &set)
		defer func() { done <- err }()
		if err == nil {
			f()
		}
	}()
	if err := <-done; err != nil {
		t.Fatalf("to CPU %d: %v", cpu, err)
	}
}

// TestWords_CompareAndSwap_Elsewhere: nobody swaps in a column of another CPU. A P may
// be another one on the same CPU, so the pinned tier is left out.
func TestWords_CompareAndSwap_Elsewhere(t *testing.T) {
	for _, want := range []tier.Tier{tier.RSEQ, tier.Shared} {
		t.Run("tier="+want.String(), func(t *testing.T) {
			now, undo := tier.Switch(want)
			defer undo()
			if now != want {
				t.Skipf("the %v tier does not work here", want)
			}
			w := percpu.NewWords(1)
			tried := 0
			stay(t, func() {
				here := w.CPU()
				for range storm.Size(100_000) {
					for cpu := range w.CPUs() {
						if cpu != here && w.CompareAndSwap(cpu, 0, 0, 1) {
							t.Errorf("in column %d, CompareAndSwap in column %d", here, cpu)
							return
						}
						tried++
					}
				}
				if !w.CompareAndSwap(here, 0, 0, 1) {
					t.Errorf("no CompareAndSwap in the caller's column %d", here)
				}
			})
			if w.Sum(0) != 1 {
				t.Errorf("the sum is %d, want 1", w.Sum(0))
			}
			if tried == 0 {
				t.Error("nothing was tried")
			}
		})
	}
}
