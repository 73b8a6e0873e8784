//go:build !race

package asm

import (
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/quiesce-go/quiesce/internal/patience"
	"github.com/quiesce-go/quiesce/internal/storm"
)

// plainWords are what a Block would be without its tiers: a word for each CPU.
var plainWords [1024]struct {
	n int64
	_ [120]byte
}

// plainAdd is the mutant of Block.Add: the same load, add and store in the word
// of the same CPU, and nothing that makes the three one.
//
//go:noinline
func plainAdd(delta int64) {
	w := &plainWords[CPU()%len(plainWords)]
	sum := atomic.LoadInt64(&w.n) + delta // a load and a store that the compiler leaves apart
	storePlain(&w.n, sum)
}

//go:noinline
func storePlain(p *int64, v int64) { *p = v }

// TestMutantPlainAdd: under the storm that Blocks live through, plain adds are
// lost. If they were not, the storm would prove nothing.
func TestMutantPlainAdd(t *testing.T) {
	if runtime.NumCPU() < 2 {
		t.Skip("needs two CPUs")
	}
	const goroutines = 64
	n := storm.Size(16_000_000) / goroutines
	patience.Until(t, "adds are lost", func() (any, bool) {
		clear(plainWords[:])
		stop := storm.Start(t)
		var wg sync.WaitGroup
		for range goroutines {
			wg.Go(func() {
				for i := range n {
					plainAdd(1)
					if i%8192 == 0 {
						runtime.Gosched()
					}
				}
			})
		}
		wg.Wait()
		stop()
		sum := int64(0)
		for i := range plainWords {
			sum += plainWords[i].n
		}
		lost := goroutines*n - int(sum)
		return fmt.Sprintf("%d of %d are not in the sum", lost, goroutines*n), lost != 0
	})
}

// loneLog is a mutant of Log.Write: the same stores in the buffer of the same CPU,
// and nothing that begins again when another writer of the column came between.
func loneLog(l *Log, event uint32, payload []byte) bool {
	l.makeBuffers(tierRSEQ)
	w := cells{l.ends.lease.Load(), tierRSEQ, CPU() % columns}
	return w.log(l, event, payload) || logFull(l, event, payload)
}

// hastyLog is a mutant of Log.Write in the shared tier: it commits the record before
// it is there.
func hastyLog(l *Log, event uint32, payload []byte) bool {
	l.makeBuffers(tierShared)
	w := cells{l.ends.lease.Load(), tierShared, sharedColumn()}
	l.locks[w.c].Lock()
	defer l.locks[w.c].Unlock()
	at, end := uint64(w.load(logHead)), uint64(w.load(logHead))+recordWords(len(payload))
	if end-uint64(w.load(logTail)) > l.mask+1 {
		return logFull(l, event, payload)
	}
	w.store(logHead, int64(end))
	if event%64 == 0 {
		runtime.Gosched() // as the scheduler may do at any time
	}
	b := l.buffer(w.t, w.c)
	*b.word(at + 1) = uint64(event)<<32 | uint64(len(payload))
	first, second := b.bytes(at+recordHeader, len(payload))
	copy(second, payload[copy(first, payload):])
	return true
}

// hastyReader is a mutant of takeLog: it frees the room before it has the payload.
func hastyReader(l *Log, col int, at, next uint64, payload []byte) {
	l.Free(col, next)
	if at%64 < 3 {
		runtime.Gosched() // as the scheduler may do at any time
	}
	l.Payload(col, at, payload)
}

// TestMutantLog: the storm that Log lives through finds records of its mutants that
// are lost, doubled or torn.
func TestMutantLog(t *testing.T) {
	for _, m := range []struct {
		name  string
		write logWriter
		take  logReader
	}{
		{"not restarted", loneLog, takeLog},
		{"commits first", hastyLog, takeLog},
		{"frees first", (*Log).Write, hastyReader},
	} {
		t.Run(m.name, func(t *testing.T) {
			if m.name == "not restarted" && runtime.NumCPU() < 2 {
				t.Skip("needs two CPUs")
			}
			patience.Until(t, "a record is wrong", func() (any, bool) {
				err := hammerLog(t, storm.Size(400_000), m.write, m.take)
				return err, err != nil
			})
		})
	}
}
