package asm

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"unsafe"

	"github.com/quiesce-go/quiesce/internal/patience"
	"github.com/quiesce-go/quiesce/internal/storm"
)

func none(*Claims, int64) *int64 { return nil }

func made() *Claims {
	c := new(Claims)
	c.Make()
	c.Open()
	return c
}

// claimedWords returns which words of a column are not 0, as bits.
func (c *Claims) claimedWords(col int) (set int) {
	for i := range ClaimWords {
		if atomic.LoadInt64(c.Word(col, i)) != 0 {
			set |= 1 << i
		}
	}
	return set
}

// TestClaims: the first free word, and other where there is none.
func TestClaims(t *testing.T) {
	c := made()
	if _, err := RSEQ(); err != nil {
		if w := c.Claim(1, none); w != nil || c.Full() {
			t.Errorf("%p, full: %v", w, c.Full())
		}
		t.Skip(err)
	}
	stay(t, func() {
		if c.Claim(1, none) == nil && Column() >= columns {
			t.Skip("this thread cannot run a sequence")
		}
		*c.Word(Column(), 0) = 0
		col := Column()
		var words [ClaimWords]*int64
		for i := range words {
			if words[i] = c.Claim(int64(i)+1, none); words[i] != c.Word(col, i) || *words[i] != int64(i)+1 {
				t.Fatalf("claim %d returns %p, want %p", i, words[i], c.Word(col, i))
			}
		}
		other := new(int64)
		if w := c.Claim(77, func(d *Claims, v int64) *int64 {
			if d != c || v != 77 {
				t.Errorf("other has %p and %d", d, v)
			}
			return other
		}); w != other {
			t.Errorf("with no word left Claim returns %p", w)
		}
		for _, i := range []int{3, 7, 0} {
			StoreRelease(words[i], 0)
			if w := c.Claim(-5, none); w != words[i] || *w != -5 {
				t.Errorf("with word %d free Claim returns %p, want %p", i, w, words[i])
			}
		}
		c.Shut()
		StoreRelease(words[5], 0)
		if w := c.Claim(1, none); w != nil {
			t.Error("claimed while shut")
		}
		c.Open()
		if w := c.Claim(1, none); w != words[5] {
			t.Errorf("opened again, Claim returns %p, want %p", w, words[5])
		}
		for col2 := range columns {
			if col2 != col && c.claimedWords(col2) != 0 {
				t.Errorf("words %b of column %d", c.claimedWords(col2), col2)
			}
		}
	})
	if n := testing.AllocsPerRun(100, func() {
		if w := c.Claim(1, none); w != nil {
			StoreRelease(w, 0)
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// TestClaims_Hammer: a word has one owner at a time, wherever he frees it.
func TestClaims_Hammer(t *testing.T) {
	if twice := hammerClaims(t, made(), (*Claims).Claim); twice != 0 {
		t.Errorf("%d times a word had two owners", twice)
	}
}

// TestMutantClaims: a claim that is not restarted gives a word to two.
func TestMutantClaims(t *testing.T) {
	if _, err := RSEQ(); err != nil {
		t.Skip(err)
	}
	patience.Until(t, "a word has two owners", func() (any, bool) {
		n := hammerClaims(t, made(), func(c *Claims, v int64, other func(*Claims, int64) *int64) *int64 {
			col := CPU()
			for i := range ClaimWords {
				if w := c.Word(col, i); atomic.LoadInt64(w) == 0 {
					StoreRelease(w, v)
					return w
				}
			}
			return other(c, v)
		})
		return n, n > 0
	})
}

// hammerClaims returns how often a word was not what its owner had stored in it.
func hammerClaims(t *testing.T, c *Claims, claim func(c *Claims, v int64, other func(*Claims, int64) *int64) *int64) int64 {
	const goroutines = 16
	n := storm.Size(2_000_000) / goroutines
	var twice, claimed atomic.Int64
	var wg sync.WaitGroup
	stop := storm.Start(t)
	for g := range goroutines {
		wg.Go(func() {
			mine := int64(0)
			for i := range n {
				v := int64(g*n+i) + 1
				w := claim(c, v, none)
				if w == nil {
					Column() // so that the thread can run sequences
					continue
				}
				mine++
				if i%64 == 0 {
					runtime.Gosched() // and perhaps to another CPU
				}
				if atomic.LoadInt64(w) != v {
					twice.Add(1)
				}
				StoreRelease(w, 0)
			}
			claimed.Add(mine)
		})
	}
	wg.Wait()
	stop()
	if _, err := RSEQ(); err == nil && claimed.Load() == 0 {
		t.Error("nobody got a word")
	}
	for col := range columns {
		if set := c.claimedWords(col); set != 0 && twice.Load() == 0 {
			t.Errorf("words %b of column %d are claimed in the end", set, col)
		}
	}
	return twice.Load()
}

// TestClaims_Gone: the words of Claims that are gone are used again, but not while one is claimed.
func TestClaims_Gone(t *testing.T) {
	if _, err := RSEQ(); err != nil {
		t.Skip(err)
	}
	const n = 8
	owned := map[unsafe.Pointer]*int64{}
	free := map[unsafe.Pointer]bool{}
	for i := range 2 * n {
		c := made()
		w := c.Claim(9, none)
		for w == nil {
			Column() // so that the thread can run sequences
			w = c.Claim(9, none)
		}
		base := c.block.lease.Load().base
		if i%2 == 0 {
			owned[base] = w
		} else {
			StoreRelease(w, 0)
			free[base] = true
		}
	}
	var kept []*Claims // else they take turns with the same words
	usedAgain := func(what string) {
		again := 0
		patience.Until(t, what, func() (any, bool) {
			runtime.GC()
			c := made()
			kept = append(kept, c)
			base := c.block.lease.Load().base
			if w := owned[base]; w != nil {
				t.Fatal("words that have an owner were used again")
			}
			if free[base] {
				again++
			}
			return again, again > n/2
		})
	}
	usedAgain("free words are used again")
	clear(free)
	for base, w := range owned {
		if *w != 9 {
			t.Errorf("a word at %p is %d", base, *w)
		}
		StoreRelease(w, 0)
		delete(owned, base)
		free[base] = true
	}
	usedAgain("words that had an owner are used again")
	runtime.KeepAlive(kept)
}
