package rcu_test

import (
	"runtime"
	"strings"
	"testing"

	"github.com/quiesce-go/quiesce/internal/buildtest"
	"github.com/quiesce-go/quiesce/rcu"
)

// TestTwins shows that the tests can fail: each is run against an engine with the fault that it is
// about, in a build of its own, and must find it.
func TestTwins(t *testing.T) {
	w := buildtest.BuildTwins(t, rcu.RaceEnabled)
	w.MustPass(t, "TestFault_R1", "-test.short")
	for _, twin := range []struct {
		mutant, test string
		find         string // in the output
		race         bool   // only in race builds, or only in others
	}{
		{"join", "TestFault_R1", "ended and must not", false},
		{"noshare", "TestSynchronize_Share", "grace periods", false},
		{"onephase", "TestFault_R2", "--- FAIL", false},
		{"nofence", "TestFault_R3$/fast", "died in its section", false},
		{"noflip", "TestSynchronize_Stream$/fast", "looks at the readers", false},
		{"nestrefresh", "TestFault_R4", "ended and must not", false},
		{"skipslot", "TestFault_R5", "alone: Synchronize returned <nil>", false},
		{"lockedregister", "TestFault_R9$/fast/reader", "a new Reader waits", false},
		{"onepass", "TestBarrier_BesidePass", "Barrier did not end", false},
		{"earlyfinish", "TestBarrier_BesideTwoPasses", "Barrier returned before", false},
		{"verdict", "TestCallHead_BesideClose", "closed, though its callback ran", false},
		{"lostclose", "TestBarrier_BesideClose", "Barrier did not end", false},
		{"nodeadlock", "TestFault_R10$/fast/guard", "in a callback returned", false},
		{"nodeadlock", "TestFault_R10_Debug$/fast/guard", "in a section returned", false},
		{"noreclaim", "TestFault_R14", "Synchronize after a Reader was dropped", false},
		{"lockedlog", "TestDebug_LogUsesDomain", "a handler that calls ReadLock about a dropped Guard did not end", false},
		{"nagging", "TestStall$/fast", "reports", false},
		{"lockedcall", "TestFault_R6$/fast/guard", "Call in a section beside a waiting Synchronize did not end", false},
		{"gpbarrier", "TestFault_R7$/fast/guard", "callbacks had run when Barrier returned", false},
		{"lostwish", "TestFault_R8", "did not end|before the callback had run", false},
		{"narrow", "TestFault_R13$/number.*", "a Reader: Synchronize returned <nil>", false},
		{"immortal", "TestFault_R15", "an idle Domain has a worker", false},
		{"requeue", "TestFault_R17", "panic: runtime error", false},
		{"lostbatch", "TestFault_R12", "callbacks queued", false},
		{"nolimit", "TestTryCall_Busy", "callbacks with a limit of", false},
		{"nolimit", "TestCall_Slowed", "past the limit took 0s", false},
		{"nolimit", "TestFault_R11_Flood$/updaters=1", "pending with a limit of", false},
		{"noexpedite", "TestCall_Expedites", "looks in a tenth of a second with many", false},
		{"starve", "TestCall_NotStarved", "a grace period did not end", false},
		{"noflush", "TestLazy$/Synchronize", "of 2 callbacks have run", false},
		{"join", "TestHammer$/.*/calm/procs=2", "freed objects", false},
		{"skipslot", "TestHammer$/.*/calm/procs=2", "freed objects", false},
		{"noedge", "TestFault_R16$/fast/reader", "DATA RACE", true},
		{"noedge", "TestFault_R16$/fast/guard", "DATA RACE", true},
	} {
		if twin.race != rcu.RaceEnabled {
			continue
		}
		t.Run(twin.mutant+"/"+twin.test, func(t *testing.T) {
			if twin.mutant != "nofence" && !strings.HasPrefix(twin.test, "TestHammer") {
				t.Parallel() // It mostly waits for what does not happen.
			}
			if twin.mutant == "nofence" && (runtime.GOARCH != "amd64" && runtime.GOARCH != "arm64" || runtime.NumCPU() < 2) {
				t.Skip("readers' own stores are fences on this architecture, or there is one processor")
			}
			w.MustFind(t, twin.mutant, twin.test, twin.find, "-test.short")
		})
	}
}
