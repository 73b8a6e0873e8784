//go:build !race

package asm

import (
	"testing"
	"time"
)

// TestMutantLog_Crowd: the crowd finds that what is not restarted is wrong.
func TestMutantLog_Crowd(t *testing.T) {
	end := time.Now().Add(30 * time.Second)
	try := 0
	for ; try < 10 || time.Now().Before(end); try++ {
		if err := crowdLog(t, loneLog); err != nil {
			t.Logf("try %d: %v", try, err)
			return
		}
	}
	t.Errorf("nothing was wrong in %d tries", try)
}
