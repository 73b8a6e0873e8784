package asm

import (
	"slices"
	"testing"
)

func TestSource_String(t *testing.T) {
	seen := map[string]bool{}
	for s := range sourceCount + 2 {
		if name := s.String(); name == "" || s < sourceCount && seen[name] {
			t.Errorf("source %d is called %q", s, name)
		} else {
			seen[name] = true
		}
	}
}

func TestSources(t *testing.T) {
	all := Sources()
	t.Log(all)
	for s := range sourceCount + 2 {
		cpu, ok := CPUBy(s)
		if ok != slices.Contains(all, s) || cpu < 0 || !ok && cpu != 0 {
			t.Errorf("CPUBy(%v) = %d, %v; the sources are %v", s, cpu, ok, all)
		}
	}
	if len(all) > 0 {
		all[0] = SourceNone
		if Sources()[0] == SourceNone {
			t.Error("Sources hands out what it needs itself")
		}
	}
	if cpu, node := CPUNode(); CPU() < 0 || cpu < 0 || node < 0 {
		t.Errorf("CPU %d, CPUNode %d, %d", CPU(), cpu, node)
	}
	if n := testing.AllocsPerRun(100, func() { CPU(); CPUNode() }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
