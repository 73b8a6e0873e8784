package rcu_test

import (
	"runtime"
	"testing"

	"github.com/quiesce-go/quiesce/asm"
	"github.com/quiesce-go/quiesce/internal/patience"
	"github.com/quiesce-go/quiesce/rcu"
)

// Guards that get no word are waited for, too, and have words again when a grace period has ended.
func TestGuard_Crowded(t *testing.T) {
	if _, err := asm.RSEQ(); err != nil {
		t.Skip(err)
	}
	d := rcu.New()
	for range 3 {
		var open []rcu.Guard
		patience.Until(t, "words run out", func() (any, bool) {
			open = append(open, d.ReadLock())
			return d.Words(), d.Crowded()
		})
		if n := d.Words(); n < asm.ClaimWords || n >= len(open) {
			t.Errorf("%d of %d Guards have words, and no more do", n, len(open))
		}
		n := d.Words()
		last := d.ReadLock()
		if d.Words() != n {
			t.Error("a Guard has a word while all are counted")
		}
		for _, g := range open {
			g.Unlock()
		}
		holds(t, d, "a Guard that is counted")
		last.Unlock()
		if n := d.Words(); n != 0 {
			t.Errorf("%d words are shown with no Guard open", n)
		}
		must(t, d.Synchronize(bg))
		patience.Until(t, "a Guard has a word", func() (any, bool) {
			g := d.ReadLock()
			defer g.Unlock()
			return d.Words(), d.Words() == 1
		})
		if d.Crowded() {
			t.Error("crowded after a grace period")
		}
	}
}

// A ReadLock that finds no word does not wait for somebody who is about to open or shut the words.
func TestGuard_CrowdedWaitFree(t *testing.T) {
	if _, err := asm.RSEQ(); err != nil {
		t.Skip(err)
	}
	d := rcu.New()
	crowd := func() {
		var open []rcu.Guard
		patience.Until(t, "words run out", func() (any, bool) {
			open = append(open, d.ReadLock())
			return d.Words(), d.Crowded()
		})
		for _, g := range open {
			g.Unlock()
		}
	}
	crowd() // The first Guard with a word and the first that is counted change how others begin.
	must(t, d.Synchronize(bg))
	release := d.HoldDivert()
	defer release()
	mustEnd(t, async(crowd), "ReadLock")
}

// A second Unlock of a Guard whose word nobody has claimed since panics, and ends no other section.
func TestGuard_UnlockedTwice(t *testing.T) {
	for _, m := range modes {
		t.Run(m.name, func(t *testing.T) {
			d := rcu.New(m.opts...)
			g, other := d.ReadLock(), d.ReadLock()
			words := d.Words() == 2
			g.Unlock()
			if words {
				if msg := panics(g.Unlock); msg != "rcu: Unlock of a Guard that was unlocked already" {
					t.Errorf("a second Unlock: %q", msg)
				}
				holds(t, d, "another Guard, after a second Unlock")
			}
			other.Unlock()
			must(t, d.Synchronize(bg))
		})
	}
}

// The first Guard of a thread has a word, too.
func TestGuard_NewThread(t *testing.T) {
	if _, err := asm.RSEQ(); err != nil {
		t.Skip(err)
	}
	d := rcu.New()
	d.ReadLock().Unlock()
	patience.Until(t, "ten new threads in a row have words", func() (any, bool) {
		n := 0
		for range 10 {
			done := make(chan int)
			go func() {
				runtime.LockOSThread() // never undone, so the thread ends with the goroutine
				g := d.ReadLock()
				defer g.Unlock()
				done <- d.Words()
			}()
			n += <-done
		}
		return n, n >= 10
	})
}
