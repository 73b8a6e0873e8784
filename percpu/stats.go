package percpu

import (
	"fmt"

	"github.com/quiesce-go/quiesce/asm"
	"github.com/quiesce-go/quiesce/internal/tier"
)

// Usage says how this process keeps its per-CPU words and what they take.
type Usage struct {
	Tier    string // "rseq", "pinned" or "shared", see package asm
	Columns int    // the CPUs that the kernel may ever bring up; each tier in use has as many columns

	// Cells is the number of words that Counters, Words and the other types have now in
	// each column, and Bytes what they come to: 8 for each cell and column that was
	// written to, at least, and at most this.
	Cells int
	Bytes int

	Mapped int // bytes of address space; a page takes memory when a CPU writes to it
}

// Stats returns the Usage of this process. It takes a lock, and is as exact as the
// last garbage collection: the cells of what is unreachable count until then.
func Stats() Usage {
	m := asm.Memory()
	return Usage{
		Tier:    tier.Current().String(),
		Columns: asm.Columns(),
		Cells:   m.Words,
		Bytes:   8 * m.Words * asm.Columns(),
		Mapped:  m.Mapped,
	}
}

// String returns u as a JSON object, so that a Usage is an expvar.Var.
func (u Usage) String() string {
	return fmt.Sprintf(`{"tier":%q,"columns":%d,"cells":%d,"bytes":%d,"mapped":%d}`, u.Tier, u.Columns, u.Cells, u.Bytes, u.Mapped)
}
