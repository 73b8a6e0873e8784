package percpu

import (
	"fmt"
	"runtime"

	"github.com/quiesce-go/quiesce/asm"
)

// Words is an array of 64-bit words with one copy for each column. A column
// belongs to a CPU, or to a P where restartable sequences do not work; there
// are further columns for threads that must fall back. All words start at 0.
//
// The usual pattern reads the own column, computes, and stores if nobody else
// has, and the goroutine is still there:
//
//	for {
//		cpu := w.CPU()
//		old := w.Load(cpu, i)
//		if w.CompareAndSwap(cpu, i, old, f(old)) {
//			break
//		}
//	}
//
// Words are made by NewWords. They may be used by any number of goroutines.
// Their memory is not on the Go heap and holds no pointers; it is used again
// when the Words are unreachable. An index or a column out of range panics.
//
// These are the operations of librseq's per-CPU counters and of the kernel's
// this_cpu_add and this_cpu_cmpxchg.
type Words struct {
	_      noCopy
	n      int
	blocks []asm.Block // asm.MaxWords words each, the last one fewer
}

const maxWords = 1 << 24

// NewWords returns n words for each column. It panics if n < 1 or n > 1<<24, or if there
// is no address space for them.
func NewWords(n int) *Words {
	if n < 1 {
		panic("percpu: NewWords of fewer than 1 word")
	}
	if n > maxWords {
		panic("percpu: NewWords of more than 1<<24 words")
	}
	w := &Words{n: n, blocks: make([]asm.Block, (n+asm.MaxWords-1)/asm.MaxWords)}
	for k := range w.blocks {
		w.blocks[k].Alloc(min(n-k*asm.MaxWords, asm.MaxWords))
	}
	return w
}

// CPU returns the column that the caller is in now: the number of its CPU with
// restartable sequences, of its P in the pinned tier. By the time it returns
// the caller may be in another one.
func (w *Words) CPU() int { return asm.Column() }

// CPUs returns the number of columns, those for threads that fall back
// included.
func (w *Words) CPUs() int { return asm.ColumnCount() }

// Add adds delta to word i of the caller's column. It costs little more than
// Counter.Add and does not allocate.
func (w *Words) Add(i int, delta int64) {
	b, i := w.word(i)
	b.Add(i, delta)
}

// CompareAndSwap stores new in word i of column cpu and returns true if the
// word was old and the caller is in that column. It is atomic with every other
// operation on that word, and does not allocate. It may return false without a
// cause in plain sight: under a debugger, for one. An Add it did not see, or
// one of another column, is not ordered by it.
func (w *Words) CompareAndSwap(cpu, i int, old, new int64) bool {
	b, i := w.word(i)
	w.checkColumn(cpu)
	if mutant == mutantStaleSwap && b.Load(cpu, i) == old {
		if old%64 == 0 {
			runtime.Gosched() // as the scheduler may do at any time
		}
		old = b.Load(cpu, i)
	}
	return b.CompareAndSwap(cpu, i, old, new)
}

// Load returns word i of column cpu.
func (w *Words) Load(cpu, i int) int64 {
	b, i := w.word(i)
	w.checkColumn(cpu)
	return b.Load(cpu, i)
}

// Sum returns the sum of word i over all columns. Every Add and successful
// CompareAndSwap that happens before it is counted; each that runs beside it
// is counted or not.
func (w *Words) Sum(i int) int64 {
	b, i := w.word(i)
	return b.Sum(i)
}

// word returns the block that holds word i and the index in it.
func (w *Words) word(i int) (*asm.Block, int) {
	if uint(i) >= uint(w.n) {
		panic(fmt.Sprintf("percpu: Words index %d out of range [0, %d)", i, w.n))
	}
	return &w.blocks[i/asm.MaxWords], i % asm.MaxWords
}

func (w *Words) checkColumn(cpu int) {
	if uint(cpu) >= uint(w.CPUs()) {
		panic(fmt.Sprintf("percpu: Words column %d out of range [0, %d)", cpu, w.CPUs()))
	}
}

// noCopy lets go vet's copylocks check find copies.
type noCopy struct{}

func (*noCopy) Lock()   {}
func (*noCopy) Unlock() {}
