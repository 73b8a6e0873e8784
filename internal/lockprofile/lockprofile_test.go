package lockprofile

import (
	"math"
	"runtime"
	"sync"
	"testing"
	"time"
)

// The share of the time in the lock is next to nothing for one thread, and most of it for many that do
// nothing but wait for each other.
func TestShare(t *testing.T) {
	// On a busy machine there may be few samples, so each gets some tries.
	share := func(f func(), as func(float64) bool) (share float64) {
		for range 10 {
			var err error
			if share, err = Share(f); err != nil {
				t.Fatal(err)
			}
			if as(share) {
				break
			}
		}
		if math.IsNaN(share) {
			t.Skip("profiles have no samples here")
		}
		return share
	}
	few, many := func(s float64) bool { return s < 30 }, func(s float64) bool { return s > 30 }
	if got := share(func() {
		var mu sync.Mutex
		for stop := time.Now().Add(200 * time.Millisecond); time.Now().Before(stop); {
			mu.Lock()
			mu.Unlock()
		}
	}, few); !few(got) {
		t.Errorf("%.0f %% for one thread", got)
	}
	if got := share(func() {
		var mu sync.Mutex
		var wg sync.WaitGroup
		stop := time.Now().Add(200 * time.Millisecond)
		for range 100 {
			wg.Go(func() {
				for time.Now().Before(stop) {
					mu.Lock()
					runtime.Gosched() // nobody gets it meanwhile
					mu.Unlock()
				}
			})
		}
		wg.Wait()
	}, many); !many(got) {
		t.Errorf("%.0f %% for many", got)
	}
}

func FuzzParseProfile(f *testing.F) {
	f.Add([]byte{0x12, 4, 0x0a, 1, 1, 0x10, 3, 0x32, 1, 'x'})
	f.Fuzz(func(t *testing.T, raw []byte) {
		if p, err := parseProfile(raw); err == nil {
			for _, s := range p.samples {
				for _, l := range s.locations {
					p.inLock(l)
				}
			}
		}
	})
}
