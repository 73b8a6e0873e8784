package main

import (
	"fmt"
	"runtime"
	"slices"
	"sync/atomic"

	"github.com/puzpuzpuz/xsync/v4"

	"github.com/quiesce-go/quiesce/asm"
	"github.com/quiesce-go/quiesce/internal/pin"
	"github.com/quiesce-go/quiesce/internal/tier"
	"github.com/quiesce-go/quiesce/percpu"
)

// stride is how far apart the counters are that one goroutine adds to, one after the other.
const stride = 7

// next returns the index of the counter after i, of n. Where there is a single one, the loops below do
// without it. Each implementation has loops of its own, since a call through a function value takes as
// long as an Add does.
func next(i, n int) int {
	if i += stride; i >= n {
		i -= n
	}
	return i
}

type paddedInt struct {
	n atomic.Int64
	_ [120]byte
}

func counters() []row {
	var rows []row
	for _, cpus := range cpuCounts() {
		for _, n := range []int{1, 100, 10000} {
			impls := []impl{
				{name: "percpu.Counter", open: quiesceCounters(n)},
				{name: "atomic.Int64", open: atomicCounters(n)},
				{name: "xsync.Counter", open: xsyncCounters(n)},
			}
			if n == 1 {
				impls[2].must = 0.2
				if cpus > 1 {
					impls[2].must = 0.25
				} else {
					impls[1].must = 1
				}
			}
			if pin.Works {
				impls = append(impls, impl{name: "procPin+atomic", open: pinnedCounters(n, cpus)})
			}
			for _, s := range asm.Sources() {
				if s == asm.SourceRDTSCP || s == asm.SourceRDPID {
					impls = append(impls, impl{name: s.String() + "+atomic", open: shardedCounters(n, s)})
				}
			}
			rows = append(rows, row{
				name: fmt.Sprintf("CounterAdd/counters=%d", n), cpus: cpus, tier: tier.RSEQ, impls: impls,
			})
		}
	}
	return rows
}

// counterTiers is the table of the thread about restartable sequences: getcpu and a locked add took
// 15.3 ns, an increment by a sequence 2.0.
func counterTiers() []row {
	var rows []row
	if len(asm.Sources()) == 0 {
		return nil
	}
	for _, cpus := range cpuCounts() {
		for _, t := range tiers() {
			impls := []impl{{name: "percpu.Counter", open: quiesceCounters(1)}}
			for _, s := range asm.Sources() {
				im := impl{name: s.String() + "+atomic", open: shardedCounters(1, s)}
				if s == oldSource() && t == tier.RSEQ {
					im.thread = 2.0 / 15.3
					im.must = im.thread
				}
				impls = append(impls, im)
			}
			rows = append(rows, row{name: "CounterTier/tier=" + t.String(), cpus: cpus, tier: t, impls: impls})
		}
	}
	return rows
}

// oldSource is what getcpu was to the thread, in 2016: the limit of a segment, which the kernel puts the
// number of the CPU into, and which takes no system call. Where there is none, it is the system call.
func oldSource() asm.Source {
	if slices.Contains(asm.Sources(), asm.SourceLSL) {
		return asm.SourceLSL
	}
	return asm.SourceGetcpu
}

// tiers are those that work here, the best one first.
func tiers() (all []tier.Tier) {
	for _, t := range []tier.Tier{tier.RSEQ, tier.Pinned, tier.Shared} {
		now, undo := tier.Switch(t)
		undo()
		if now == t {
			all = append(all, t)
		}
	}
	return all
}

func quiesceCounters(n int) func() work {
	return func() work {
		all := make([]percpu.Counter, n)
		for i := range all {
			all[i].Add(1) // the first one gets its memory
		}
		return work{each: func(worker int) func(int) {
			at := worker * n / 2 % n
			return func(times int) {
				if n == 1 {
					c := &all[0]
					for range times {
						c.Add(1)
					}
					return
				}
				i := at
				for range times {
					all[i].Add(1)
					i = next(i, n)
				}
				at = i
			}
		}}
	}
}

// atomicCounters are what one writes first: one word that all add to.
func atomicCounters(n int) func() work {
	return func() work {
		all := make([]paddedInt, n)
		return work{each: func(worker int) func(int) {
			at := worker * n / 2 % n
			return func(times int) {
				if n == 1 {
					c := &all[0].n
					for range times {
						c.Add(1)
					}
					return
				}
				i := at
				for range times {
					all[i].n.Add(1)
					i = next(i, n)
				}
				at = i
			}
		}}
	}
}

func xsyncCounters(n int) func() work {
	return func() work {
		all := make([]*xsync.Counter, n)
		for i := range all {
			all[i] = xsync.NewCounter()
		}
		return work{each: func(worker int) func(int) {
			at := worker * n / 2 % n
			return func(times int) {
				if n == 1 {
					c := all[0]
					for range times {
						c.Add(1)
					}
					return
				}
				i := at
				for range times {
					all[i].Add(1)
					i = next(i, n)
				}
				at = i
			}
		}}
	}
}

// pinnedCounters have a word for each P, found through the scheduler's pin. The pin is not held during
// the addition, as one does who may not rely on what the runtime does not promise; therefore it is
// atomic.
func pinnedCounters(n, procs int) func() work {
	return func() work {
		all := make([][]paddedInt, n)
		for i := range all {
			all[i] = make([]paddedInt, procs)
		}
		return work{each: func(worker int) func(int) {
			at := worker * n / 2 % n
			return func(times int) {
				i := at
				for range times {
					p := pin.Pin()
					pin.Unpin()
					shards := all[i]
					shards[p%len(shards)].n.Add(1)
					if n > 1 {
						i = next(i, n)
					}
				}
				at = i
			}
		}}
	}
}

// shardedCounters have a word for each CPU, whose number s tells.
func shardedCounters(n int, s asm.Source) func() work {
	return func() work {
		shards := 1
		for shards < runtime.NumCPU() {
			shards *= 2
		}
		all := make([][]paddedInt, n)
		for i := range all {
			all[i] = make([]paddedInt, shards)
		}
		return work{each: func(worker int) func(int) {
			at := worker * n / 2 % n
			return func(times int) {
				i := at
				for range times {
					cpu, _ := asm.CPUBy(s)
					c := all[i]
					c[cpu&(len(c)-1)].n.Add(1)
					if n > 1 {
						i = next(i, n)
					}
				}
				at = i
			}
		}}
	}
}

// ---- the number of the CPU

// keep makes its argument used. It writes nothing that goroutines would share.
//
//go:noinline
func keep(int) {}

func cpuNumbers() []row {
	cpu := impl{name: "asm.CPU", open: ops(func(n int) {
		s := 0
		for range n {
			s += asm.CPU()
		}
		keep(s)
	})}
	call := impl{name: "empty-call", plus: 1, open: ops(func(n int) {
		for range n {
			empty()
		}
	})}
	impls := []impl{cpu, call}
	// Reported: the field of struct rseq 0.8 ns, an instruction that reads a segment's limit 13.0, the
	// system call 53.9.
	threads := map[asm.Source]float64{asm.SourceLSL: 0.8 / 13.0, asm.SourceGetcpu: 0.8 / 53.9}
	for _, s := range asm.Sources() {
		impls = append(impls, impl{name: "CPUBy-" + s.String(), own: true, thread: threads[s], open: ops(func(n int) {
			sum := 0
			for range n {
				cpu, _ := asm.CPUBy(s)
				sum += cpu
			}
			keep(sum)
		})})
	}
	return []row{{name: "CPU", cpus: 1, tier: tier.RSEQ, impls: impls}}
}
