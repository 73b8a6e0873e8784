package main

import (
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/quiesce-go/quiesce/internal/tier"
	"github.com/quiesce-go/quiesce/seqlock"
)

func seqlocks() []row {
	var rows []row
	for _, cpus := range cpuCounts() {
		rows = append(rows,
			loads[[2]uint64](16, cpus),
			loads[[8]uint64](64, cpus),
			loads[[32]uint64](256, cpus),
			loads[[128]uint64](1024, cpus))
	}
	return append(rows,
		stores[[2]uint64](16),
		stores[[8]uint64](64),
		stores[[32]uint64](256),
		stores[[128]uint64](1024))
}

// A record is one that load copies and store replaces, n times: the loops are in them, as the call of a
// function value would take longer than a small copy.
type record[T any] struct {
	name        string
	load, store func(v *T, n int)
}

func records[T any]() []record[T] {
	var (
		v       seqlock.Value[T]
		mu      sync.RWMutex
		guarded T
		p       atomic.Pointer[T]
	)
	p.Store(new(T))
	return []record[T]{
		{"seqlock.Value",
			func(dst *T, n int) {
				for range n {
					v.LoadTo(dst)
				}
			},
			func(src *T, n int) {
				for range n {
					v.Store(*src)
				}
			}},
		{"sync.RWMutex",
			func(dst *T, n int) {
				for range n {
					mu.RLock()
					*dst = guarded
					mu.RUnlock()
				}
			},
			func(src *T, n int) {
				for range n {
					mu.Lock()
					guarded = *src
					mu.Unlock()
				}
			}},
		{"atomic.Pointer",
			func(dst *T, n int) {
				for range n {
					*dst = *p.Load()
				}
			},
			func(src *T, n int) {
				for range n {
					c := new(T)
					*c = *src
					p.Store(c)
				}
			}},
	}
}

// loads copies the record to the heap, with nobody writing.
func loads[T any](size, cpus int) row {
	must := pick(cpus, 0.5, 0.25)
	if size > 256 {
		must = 0 // nothing was asked for
	}
	return recordRow(fmt.Sprintf("ValueLoad/bytes=%d", size), cpus, must,
		func(r record[T]) func(*T, int) { return r.load })
}

func stores[T any](size int) row {
	return recordRow(fmt.Sprintf("ValueStore/bytes=%d", size), 1, 0,
		func(r record[T]) func(*T, int) { return r.store })
}

func recordRow[T any](name string, cpus int, must float64, which func(record[T]) func(*T, int)) row {
	r := row{name: name, cpus: cpus, tier: tier.RSEQ}
	for i, rec := range records[T]() {
		f := which(rec)
		im := impl{name: rec.name, open: func() work {
			return work{each: func(int) func(int) {
				v := &new(struct {
					_ [128]byte // small ones would lie in a line with another goroutine's
					T T
					_ [128]byte
				}).T
				return func(n int) { f(v, n) }
			}}
		}}
		if i == 1 {
			im.must = must
		}
		r.impls = append(r.impls, im)
	}
	return r
}
