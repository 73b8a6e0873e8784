//go:build (amd64 || arm64) && gc && !purego && !race && !go1.28

package seqlock

import (
	"math/rand/v2"
	"testing"
)

// TestCheckCalls checks that this build's Go passes arguments as the assembly expects
// them, and that it would be noticed if it did not: any two the other way round, or
// nothing where they should be.
func TestCheckCalls(t *testing.T) {
	if !calls {
		t.Error("arguments are passed in an unknown way")
	}
	check := byRegisters[func(a, b, c, d, e, f uintptr) uintptr](&checkCode)
	for i := range 6 {
		for j := range i {
			if checkCalls(func(a, b, c, d, e, f uintptr) uintptr {
				x := [6]uintptr{a, b, c, d, e, f}
				x[i], x[j] = x[j], x[i]
				return check(x[0], x[1], x[2], x[3], x[4], x[5])
			}) {
				t.Errorf("arguments %d and %d the other way round are taken as they come", j, i)
			}
		}
	}
	for _, got := range []uintptr{0, 1, 1 << 50} {
		if checkCalls(func(a, b, c, d, e, f uintptr) uintptr { return got }) {
			t.Errorf("%#x is taken for the result", got)
		}
	}
}

// TestChoose_Portable has the portable routines in the place of the assembly, as they are
// where calls is false.
func TestChoose_Portable(t *testing.T) {
	defer func(l, s wordsFunc, ll latchFunc) { loadWords, storeWords, loadLatchWords = l, s, ll }(loadWords, storeWords, loadLatchWords)
	loadWords = choose[wordsFunc](false, &loadCode, loadGeneric)
	storeWords = choose[wordsFunc](false, &storeCode, storeGeneric)
	loadLatchWords = choose[latchFunc](false, &loadLatchCode, loadLatchGeneric)
	rnd := rand.New(rand.NewPCG(1, 2))
	for n := 0; n <= maxSize; n += 13 {
		roundTrip(t, routines{"portable", anyLoad, anyStore, anyPublish}, n, n%8, rnd)
	}
	testCell(t, newValue[point])
	testCell(t, newLatch[point])
	size(t, [9]uint64{1, 8: 9}) // testCell's T is a few words
}
