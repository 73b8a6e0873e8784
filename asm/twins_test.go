//go:build linux && !android && (amd64 || arm64) && gc && !purego && !race && !go1.28

package asm

import (
	"math"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/quiesce-go/quiesce/internal/storm"
)

// TestBlock_Twins has the assembly and its Go twins do the same operations, each in a column of its own, and
// compares what they return, and after each one every word of both columns.
func TestBlock_Twins(t *testing.T) {
	if _, err := RSEQ(); err != nil {
		t.Skip(err)
	}
	const words, stack, depth, lock = 16, 8, 5, 15 // what is from 1 to 6 takes all the others
	var b Block
	b.Alloc(words)
	var claimed Claims
	claimed.Make()
	claimed.Open()
	var byWord [ClaimWords]int64 // what the Claims are by Go
	oneColumn(t, func() {
		col := Column()
		if col >= columns {
			t.Skip("libc has registered the first thread with the kernel, and not for us")
		}
		l := b.lease.Load()
		byGo := cells{l, tierShared, col}
		for i := range words {
			if i == 0 || i == 7 || i == 14 {
				*l.word(tierRSEQ, col, i), *l.word(tierShared, col, i) = 0x5a5a5a5a5a5a5a5a, 0x5a5a5a5a5a5a5a5a
			}
		}
		rng := rand.New(rand.NewPCG(rand.Uint64(), 1))
		word := func() int { return 1 + rng.IntN(6) }
		value := func() int64 {
			some := []int64{0, 1, -1, 2, math.MinInt64, math.MaxInt64, 1 << 32, int64(rng.Uint64()), byGo.load(word())}
			return some[rng.IntN(len(some))]
		}
		here := func() int { return []int{col, col, col, col + 1, -1, columns}[rng.IntN(6)] }
		// asm repeats what was aborted too often, as all callers do.
		asm := func(op func() int) (ok bool) {
			for {
				if c := op(); c != seqCannot {
					if c != col && c != seqNo {
						t.Fatalf("column %d, in %d", c, col)
					}
					return c == col
				}
			}
		}
		sameCol := func(c int, op func() bool) bool { return c == col && op() }
		did := map[string]int{}
		for n := range storm.Size(1_000_000) {
			i, j, c, old, v := word(), word(), here(), value(), value()
			if rng.IntN(2) == 0 {
				old = byGo.load(i)
			}
			var name string
			var got, want [2]int64
			result := func(ok bool, v int64) [2]int64 {
				if ok {
					did[name]++
					return [2]int64{1, v}
				}
				return [2]int64{}
			}
			switch rng.IntN(8) {
			case 0:
				op := adds[rng.IntN(len(adds))]
				name = op.name
				op.do(&b, i, v)
				got, want = result(true, 0), result(true, 0)
				atomic.AddInt64(l.word(tierShared, col, i), v)
			case 1:
				name = "blockCompareAndSwap"
				got = result(asm(func() int { return blockCompareAndSwap(&b, i, c, old, v) }), 0)
				want = result(sameCol(c, func() bool { return byGo.swap(i, old, v) }), 0)
			case 2:
				if name = "blockSwapTwo"; i == j {
					continue
				}
				got = result(asm(func() int { return blockSwapTwo(&b, i, c, old, v, j, ^v) }), 0)
				want = result(sameCol(c, func() bool { return byGo.swapTwo(i, old, v, j, ^v) }), 0)
			case 3:
				name = "blockPush"
				got = result(asm(func() int { return blockPush(&b, stack, depth, v) }), 0)
				want = result(byGo.push(stack, depth, v), 0)
			case 4:
				name = "blockPop"
				var x int64
				ok := asm(func() (c int) { c, x = blockPop(&b, stack); return c })
				got = result(ok, x)
				x, ok = byGo.pop(stack)
				want = result(ok, x)
			case 5:
				name = "blockAddWithin"
				bound := []int64{1, 2, 1 << 33, math.MaxInt64}[rng.IntN(4)]
				got = result(asm(func() int { return blockAddWithin(&b, i, v, -bound, bound) }), 0)
				want = result(byGo.addWithin(i, v, bound), 0)
			case 6:
				op := tryLocks[rng.IntN(len(tryLocks))]
				name = op.name
				lk, slot := op.do(&b, lock)
				if slot >= columns {
					t.Fatal(name, " fell back") // aborted 64 times in a row, with nobody to do that
				}
				got = result(lk != nil && lk == b.lockAt(col, lock), int64(slot))
				want = result(atomic.CompareAndSwapInt64(l.word(tierShared, col, lock), 0, 1), int64(col))
				if n%3 == 0 && lk != nil {
					lk.Unlock()
					atomic.StoreInt64(l.word(tierShared, col, lock), 0)
				} else if n%5 == 0 {
					b.lockAt(col, lock).Unlock()
					b.lockAt(tierShared*columns+col, lock).Unlock()
				}
			case 7:
				op := claims[rng.IntN(len(claims))]
				name = op.name
				w := op.do(&claimed, v|1, func(*Claims, int64) *int64 { return nil })
				got = result(w != nil, 0)
				if k := slices.Index(byWord[:], 0); k >= 0 {
					byWord[k] = v | 1
					want = [2]int64{1, 0}
				}
				if n%5 == 0 {
					k := rng.IntN(ClaimWords)
					StoreRelease(claimed.Word(col, k), 0)
					byWord[k] = 0
				}
				for k := range byWord {
					if y := *claimed.Word(col, k); y != byWord[k] {
						t.Fatalf("%s: word %d is %#x by assembly, %#x by Go", name, k, y, byWord[k])
					}
				}
			}
			if got != want {
				t.Fatalf("%s, words %d and %d, %#x and %#x: %#x by assembly, %#x by Go", name, i, j, old, v, got, want)
			}
			for w := range words {
				if x, y := *l.word(tierRSEQ, col, w), *l.word(tierShared, col, w); x != y {
					t.Fatalf("%s, words %d and %d, %#x and %#x: word %d is %#x by assembly, %#x by Go", name, i, j, old, v, w, x, y)
				}
			}
		}
		for other := range tierCount * columns {
			for w := range words {
				if *l.word(0, other, w) != 0 && other != col && other != tierShared*columns+col {
					t.Errorf("word %d of column %d is %#x", w, other, *l.word(0, other, w))
				}
			}
		}
		t.Log(did)
		for _, s := range sequences() {
			if did[s.name] == 0 && s.name != "rseqProbe" && s.name != nameLogWrite {
				t.Errorf("%s did nothing: the test does not do what it should", s.name)
			}
		}
	})
}
