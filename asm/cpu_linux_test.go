package asm

import (
	"runtime"
	"slices"
	"testing"

	"golang.org/x/sys/unix"
)

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

// allowedCPUs lists the CPUs that a thread of this process may run on.
func allowedCPUs(t *testing.T) (cpus []int) {
	t.Helper()
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(0, &set); err != nil {
		t.Fatal(err)
	}
	for cpu := range len(set) * 64 {
		if set.IsSet(cpu) {
			cpus = append(cpus, cpu)
		}
	}
	return cpus
}

// TestFault_P4: every way to read the CPU number tells the CPU that the thread
// is tied to.
func TestFault_P4(t *testing.T) {
	_, _, known := getcpu()
	if !known {
		t.Skip("getcpu(2) does not work here")
	}
	for _, cpu := range allowedCPUs(t) {
		onCPU(t, cpu, func() {
			got, node, _ := getcpu()
			if got != cpu {
				t.Errorf("getcpu says %d on CPU %d", got, cpu)
			}
			for _, s := range Sources() {
				if got, ok := CPUBy(s); !ok || got != cpu && s != SourceProc {
					t.Errorf("%v says %d, %v on CPU %d", s, got, ok, cpu)
				}
			}
			if got := CPU(); got != cpu && Sources()[0] != SourceProc {
				t.Errorf("CPU() = %d on CPU %d", got, cpu)
			}
			if c, n := CPUNode(); c != cpu || n != node {
				t.Errorf("CPUNode() = %d, %d on CPU %d of node %d", c, n, cpu, node)
			}
		})
	}
}

// TestSources_Lying: a source that does not tell the CPU's number, always or now and then, is not used, and one
// that does is, on every CPU.
func TestSources_Lying(t *testing.T) {
	if _, _, known := getcpu(); !known {
		t.Skip("getcpu(2) does not work here")
	}
	calls := 0
	readers := map[Source]func() int{ // by names that say nothing here
		SourceRSEQ:   func() int { cpu, _, _ := getcpu(); return cpu },
		SourceRDPID:  func() int { cpu, _, _ := getcpu(); return cpu + 1 },
		SourceRDTSCP: func() int { cpu, _, _ := getcpu(); return cpu | 1<<12 }, // the node is not cut off
		SourceLSL:    func() int { return -1 },
		SourceProc: func() int {
			cpu, _, _ := getcpu()
			if calls++; calls == 5 {
				return cpu + 1
			}
			return cpu
		},
	}
	some := []Source{SourceRDPID, SourceRSEQ, SourceLSL, SourceRDTSCP, SourceProc}
	for _, cpu := range allowedCPUs(t) {
		onCPU(t, cpu, func() {
			calls = 0
			var l sourceLists
			l.compare(some, func(s Source) int { return readers[s]() })
			if !slices.Equal(l.work, []Source{SourceRSEQ}) || !slices.Equal(l.rejected, []Source{SourceRDPID, SourceLSL, SourceRDTSCP, SourceProc}) {
				t.Errorf("on CPU %d: these are taken to work: %v; these not: %v", cpu, l.work, l.rejected)
			}
		})
	}
}

// stay runs f on a thread that stays on one CPU.
func stay(t *testing.T, f func()) {
	t.Helper()
	onCPU(t, allowedCPUs(t)[0], f)
}
