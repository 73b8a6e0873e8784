package asm

import (
	"slices"
	"sync"
	"sync/atomic"

	"github.com/quiesce-go/quiesce/internal/pin"
)

// A Source is a way to learn the number of the CPU the caller runs on.
type Source uint8

const (
	SourceNone   Source = iota
	SourceRSEQ          // the cpu_id field that the kernel keeps in the thread's struct rseq
	SourceRDPID         // the RDPID instruction (amd64)
	SourceRDTSCP        // the RDTSCP instruction, which reads the cycle counter too (amd64)
	SourceLSL           // the limit of a segment that the kernel sets up on each CPU (amd64)
	SourceGetcpu        // the getcpu(2) system call
	SourceProc          // not a CPU but a P of the Go scheduler, of which a CPU runs one at a time
	sourceCount
)

var sourceNames = [sourceCount]string{"none", "rseq", "rdpid", "rdtscp", "lsl", "getcpu", "proc"}

// String returns the name of s in lower case.
func (s Source) String() string {
	if s < sourceCount {
		return sourceNames[s]
	}
	return "unknown"
}

// CPU returns the number of the CPU the caller ran on at some moment during
// the call, from the fastest source there is. By the time it returns the
// caller may run elsewhere. The number is never negative; it is 0 where no
// source works. With SourceProc it is the number of a P.
//
// It costs 1 ns more than an empty assembly call with SourceRSEQ, and does not
// allocate, except that a new thread's first call may register the thread.
func CPU() int { return cpu() }

// CPUNode is CPU with the number of the NUMA node that the CPU belongs to,
// which is 0 where it is not known.
func CPUNode() (cpu, node int) {
	if cpu, node, ok := cpuNode(); ok {
		return cpu, node
	}
	return CPU(), 0
}

// Sources returns the sources that work here, fastest first. Each was compared
// with getcpu(2) by the first call; one that disagreed is left out.
func Sources() []Source {
	return slices.Clone(sources().work)
}

// Rejected returns the sources that this machine has and that are not used, because
// they disagreed with getcpu(2) or could not be compared with it. [RSEQ] tells it of
// SourceRSEQ. Like Sources it compares them in the first call, and allocates the copy that
// it returns; both may be called by any number of goroutines.
func Rejected() []Source {
	return slices.Clone(sources().rejected)
}

// CPUBy returns the CPU number that source s gives, and whether s works here.
func CPUBy(s Source) (cpu int, ok bool) {
	if !hasSource(s) {
		return 0, false
	}
	switch s {
	case SourceRSEQ:
		c := rseqColumn()
		if c < 0 && rseqThread() {
			c = rseqColumn()
		}
		return max(c, 0), c >= 0
	case SourceProc:
		p := pin.Pin()
		pin.Unpin()
		return p, true
	case SourceGetcpu:
		cpu, _, ok := getcpu()
		return cpu, ok
	}
	return cpuByInstruction(s), true
}

func hasSource(s Source) bool {
	for _, src := range sources().work {
		if src == s {
			return true
		}
	}
	return false
}

type sourceLists struct{ work, rejected []Source }

// sources finds out, once, which sources work.
var sources = sync.OnceValue(func() *sourceLists {
	decide()
	l := new(sourceLists)
	if rseqBuilt && rseqErr == nil {
		l.work = append(l.work, SourceRSEQ) // compared with getcpu(2) by rseqStart
	}
	l.compare(instructionSources(), cpuByInstruction)
	if pin.Works { // a pin is cheaper than a system call
		l.work = append(l.work, SourceProc)
	}
	if _, _, ok := getcpu(); ok {
		l.work = append(l.work, SourceGetcpu)
	}
	if len(l.work) > 0 && l.work[0] == SourceRDPID {
		useRDPID.Store(1)
	}
	return l
})

// compare sorts out which of some sources, read by read, agree with getcpu(2).
func (l *sourceLists) compare(some []Source, read func(Source) int) {
	for _, s := range some {
		if agrees(s, read) {
			l.work = append(l.work, s)
		} else {
			l.rejected = append(l.rejected, s)
		}
	}
}

// useRDPID tells cpu in rseq_amd64.s to use RDPID itself. Until it is set,
// cpuSlow gives the same numbers.
var useRDPID atomic.Uint32

// agrees compares s with getcpu(2). The thread may move while it looks, so a
// difference counts only if getcpu gives the same before and after.
func agrees(s Source, read func(Source) int) bool {
	same := 0
	for range 100 {
		before, _, ok := getcpu()
		cpu := read(s)
		after, _, _ := getcpu()
		switch {
		case !ok:
			return false // nothing to compare with
		case cpu == before || cpu == after:
			same++
		case before == after:
			return false
		}
		if same == 8 {
			return true
		}
	}
	return false
}

// cpuSlow is where CPU goes when neither the thread's rseq area nor a cheap
// instruction says the number.
//
//lint:ignore U1000 the assembly jumps to it
func cpuSlow() int {
	decide()
	rseqThread() // so that the thread's next call is a fast one
	for _, s := range sources().work {
		if cpu, ok := CPUBy(s); ok {
			return cpu
		}
	}
	return 0
}

// sharedColumn picks a column of the shared tier for the caller: that of its
// CPU where its number is cheap to read, else one that depends on where its
// stack is, so that it stays the same for a goroutine.
func sharedColumn() int {
	if cpu, ok := cheapCPU(); ok {
		return cpu % columns
	}
	return int((stackAddress() >> 12) * 0x9e3779b1 >> 8 % uintptr(columns))
}
