package percpu

import (
	"runtime"
	"testing"

	"github.com/quiesce-go/quiesce/asm"
	"github.com/quiesce-go/quiesce/internal/buildtest"
)

// TestTwins shows that the tests can fail: each is run in a build of its own with the fault that it
// is about, and must find it.
func TestTwins(t *testing.T) {
	if runtime.NumCPU() < 2 {
		t.Skip("the faults need two processors")
	}
	w := buildtest.BuildTwins(t, raceEnabled)
	w.MustPass(t, "TestHammerPool", "-test.short")
	for _, twin := range []struct {
		mutant, test string
		find         string // in the output
		can          bool   // whether this build has the fault
	}{
		{mutantNoStop, "TestHammerPool", "had two owners", poolStacks},
		{mutantNoFence, "TestHammerRef", "--- FAIL", asm.Gates()},
		{mutantNoLook, "TestHammerRWMutex", "--- FAIL", asm.Gates()},
		{mutantNoLock, "TestHammerLocal", "--- FAIL", true},
		{mutantNoFence, "TestStormRef", "early or twice|panic: percpu: ", asm.Gates()},
		{mutantNoLook, "TestStormRWMutex", "readers beside a writer", asm.Gates()},
		{mutantNoLock, "TestStormLocal", "lent twice", true},
		{mutantLostRest, "TestStormBatchCounter", "is counted as", true},
		{mutantOverLimit, "TestHammerBatchCounterTryAdd", "past the limit|the limit", true},
		{mutantStaleSwap, "TestHammerWords", "were counted as", true},
		{mutantAnyRef, "TestRef_Zero", "got panic <nil>", true},
		{mutantForget, "TestLocal_OnlyKnownToDo", "was collected", true},
	} {
		t.Run(twin.mutant+"/"+twin.test, func(t *testing.T) {
			if !twin.can {
				t.Skip("this build does not do what the fault leaves out")
			}
			// It gets some tries, for what is found may depend on who runs when.
			w.MustFind(t, twin.mutant, twin.test, twin.find, "-test.short", "-test.count=100")
		})
	}
}
