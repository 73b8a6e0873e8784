//go:build linux && gc && !purego

package asm

import "testing"

// TestFault_P4_Decode: the CPU number has 12 bits, the node is above it.
func TestFault_P4_Decode(t *testing.T) {
	if cpu, node := 0x101b&auxCPU, 0x101b>>auxNode; cpu != 0x1b || node != 1 {
		t.Errorf("0x101b is CPU %#x of node %d, want 0x1b of 1", cpu, node)
	}
	if hasRDPID && rdpid() != rdtscp() && rdpid() != rdtscp() {
		t.Errorf("RDPID %#x, RDTSCP %#x", rdpid(), rdtscp())
	}
}
