//go:build !(linux && amd64 && gc && !purego)

package asm

func instructionSources() []Source  { return nil }
func cpuByInstruction(s Source) int { return 0 }
func cheapCPU() (int, bool)         { return 0, false }

func cpuNode() (cpu, node int, ok bool) { return getcpu() }
