//go:build linux && gc && !purego

package asm

import "github.com/klauspost/cpuid/v2"

// On amd64 the kernel puts node<<12 | cpu where RDPID, RDTSCP and LSL find it.
const (
	auxCPU  = 1<<12 - 1
	auxNode = 12
)

var (
	hasRDPID  = maxLeaf() >= 7 && leaf7ECX()&(1<<22) != 0 // cpuid/v2 does not name the bit
	hasRDTSCP = cpuid.CPU.Supports(cpuid.RDTSCP)
)

func maxLeaf() uint32
func leaf7ECX() uint32
func rdpid() uint64
func rdtscp() uint64

// lsl returns the limit of the kernel's per-CPU segment, and 0 and false if it
// has none.
func lsl() (limit uint64, ok bool)

func instructionSources() []Source {
	var s []Source
	if hasRDPID {
		s = append(s, SourceRDPID)
	}
	if _, ok := lsl(); ok {
		s = append(s, SourceLSL)
	}
	if hasRDTSCP {
		s = append(s, SourceRDTSCP)
	}
	return s
}

func cpuByInstruction(s Source) int {
	var aux uint64
	switch s {
	case SourceRDPID:
		aux = rdpid()
	case SourceRDTSCP:
		aux = rdtscp()
	case SourceLSL:
		aux, _ = lsl()
	}
	return int(aux & auxCPU)
}

// cheapCPU returns the CPU number if an instruction that costs less than a pin
// or a hash can tell.
func cheapCPU() (int, bool) {
	if hasRDPID {
		return int(rdpid() & auxCPU), true
	}
	return 0, false
}

func cpuNode() (cpu, node int, ok bool) {
	for _, s := range sources().work {
		var aux uint64
		switch s {
		case SourceRDPID:
			aux = rdpid()
		case SourceLSL:
			aux, _ = lsl()
		case SourceRDTSCP:
			aux = rdtscp()
		default:
			continue
		}
		return int(aux & auxCPU), int(aux >> auxNode), true
	}
	return getcpu()
}
