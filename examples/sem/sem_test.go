package main

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/quiesce-go/quiesce/examples/sem/sysv"
	"github.com/quiesce-go/quiesce/internal/commandtest"
)

// BenchmarkSemop models semop-multi, the measurement that System V's semaphores left their lock by: 256
// threads and the 128 semaphores of one array, whatever GOMAXPROCS says. They come for their calls a
// batch at a time, so that none is left over at the end.
func BenchmarkSemop(b *testing.B) {
	for twin, name := range twinNames {
		b.Run("impl="+name, func(b *testing.B) {
			c := newCrowd(twin, 256, 128)
			defer c.finish()
			var left atomic.Int64
			left.Store(int64(b.N))
			run := c.start(func() int {
				n := int(min(left.Add(-batch)+batch, batch))
				return n + n%2 // in pairs
			})
			b.ReportAllocs()
			b.ResetTimer()
			run()
			b.StopTimer()
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds()/1e6, "Mops/s")
		})
	}
}

// BenchmarkMixed models the use that a database makes of semaphores: many arrays, which are also looked
// at, set, and removed.
func BenchmarkMixed(b *testing.B) {
	for _, users := range []int{100, 400, 800} {
		for twin, name := range twinNames {
			b.Run(fmt.Sprintf("impl=%s/users=%d", name, users), func(b *testing.B) {
				sum := 0.0
				for b.Loop() {
					sum += mixed(twin, users, 20*time.Millisecond)
				}
				b.ReportMetric(sum/float64(b.N)/1e6, "Mcalls/s")
			})
		}
	}
}

func TestRun(t *testing.T) {
	for _, test := range []struct {
		args  []string
		want  []string
		leave string
	}{
		{[]string{"-threads", "5", "-semaphores", "3"}, []string{"5 threads, 3 semaphores", "2 rounds", "\n5 threads   locked ", "\n5 threads   rcu ", "x (", "1.80x", "membarrier"}, "NaN"},
		{[]string{"-threads", "5", "-mode", "locked"}, []string{"   locked   "}, "   rcu   "},
		{[]string{"-threads", "5", "-mode", "rcu"}, []string{"   rcu   "}, "x ("},
		{[]string{"-users", "3,10"}, []string{"64 arrays", "\n3 users    locked ", "\n3 users    rcu ", "\n10 users   locked ", "\n10 users   rcu ", "84.4 %"}, "threads"},
	} {
		var out, errs bytes.Buffer
		code := run(append(test.args, "-time", "60ms", "-rounds", "2"), &out, &errs)
		if code != 0 || !strings.Contains(errs.String(), "round 2 of 2") {
			t.Errorf("exit status %d, progress %q", code, errs.String())
		}
		for _, want := range test.want {
			if !strings.Contains(out.String(), want) {
				t.Errorf("no %q in:\n%s", want, out.String())
			}
		}
		if strings.Contains(out.String(), test.leave) {
			t.Errorf("%q in:\n%s", test.leave, out.String())
		}
	}
}

func TestRun_Misuse(t *testing.T) {
	commandtest.Misuse(t, run, usage,
		[]string{"more"}, []string{"-what"}, []string{"-mode", "other"}, []string{"-rounds", "0"}, []string{"-threads", "-1"}, []string{"-time", "-1s"}, []string{"-semaphores", "0"}, []string{"-users", "0"}, []string{"-users", "1,,2"})
}

func TestRun_WriteError(t *testing.T) {
	commandtest.WriteError(t, run, "-threads", "2", "-time", "20ms", "-rounds", "1", "-mode", "rcu")
}

// Both twins look at permissions and ask the policy, which denies what it does not know.
func TestPolicy(t *testing.T) {
	give := []sysv.Op{{Delta: 1}}
	for twin, name := range twinNames {
		c := newCrowd(twin, 1, 1)
		for _, who := range []sysv.Credentials{{UID: 5000, GID: 100}, {UID: 1003, GID: 101}} {
			th := c.table.NewOwner(who).NewThread()
			if err := th.Op(t.Context(), c.id, give); !errors.Is(err, sysv.EACCES) {
				t.Errorf("%s: %+v gets %v", name, who, err)
			}
			th.Close()
		}
		c.finish()
	}
}
