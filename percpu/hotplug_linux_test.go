package percpu

import (
	"fmt"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/quiesce-go/quiesce/internal/storm"
)

// hotplug is the environment variable that lets TestHotplug unplug CPUs.
const hotplug = "QUIESCE_HOTPLUG"

// TestHotplug: CPUs go and come again while everything counts on them.
func TestHotplug(t *testing.T) {
	if os.Getenv(hotplug) == "" {
		t.Skip("only where no one else needs the CPUs, as in an emulated machine: set " + hotplug)
	}
	plug := func(cpu int, state string) error {
		return os.WriteFile(fmt.Sprintf("/sys/devices/system/cpu/cpu%d/online", cpu), []byte(state), 0)
	}
	inStorm(t, func(t *testing.T, _ func(func()) func()) {
		var (
			c       Counter
			w       = NewWords(1)
			l       = NewLocal[int](nil)
			rw      RWMutex
			did, ab atomic.Int64
			a, b    int
			over    atomic.Bool
			wg      sync.WaitGroup
		)
		for g := range 8 {
			wg.Go(func() {
				for n := 0; !over.Load(); n++ {
					c.Inc()
					for {
						cpu := w.CPU()
						if old := w.Load(cpu, 0); w.CompareAndSwap(cpu, 0, old, old+1) {
							break
						}
					}
					l.Do(func(v *int) { *v++ })
					if g == 0 && n%512 == 0 {
						rw.Lock()
						a++
						runtime.Gosched()
						b++
						rw.Unlock()
					} else {
						rw.RLock()
						if a != b {
							ab.Add(1)
						}
						rw.RUnlock()
					}
					did.Add(1)
				}
			})
		}
		changes := 0
		for range max(storm.Size(100), 4) {
			for _, state := range []string{"0", "1"} {
				for cpu := 1; cpu < runtime.NumCPU(); cpu++ {
					if err := plug(cpu, state); err == nil {
						changes++
					} else if t.Log(err); state == "1" {
						t.Fail()
					}
					time.Sleep(time.Millisecond)
				}
			}
		}
		over.Store(true)
		wg.Wait()
		inLocal := 0
		for _, v := range l.All() {
			inLocal += *v
		}
		if n := did.Load(); c.Sum() != n || w.Sum(0) != n || int64(inLocal) != n || ab.Load() != 0 {
			t.Errorf("%d were counted as %d, %d and %d; %d readers beside a writer", n, c.Sum(), w.Sum(0), inLocal, ab.Load())
		}
		if changes == 0 {
			t.Error("no CPU could be unplugged")
		}
		t.Logf("%d counted, %d CPUs unplugged or plugged in", did.Load(), changes)
	})
}
