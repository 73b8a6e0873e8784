//go:build !race

package asm

import (
	"testing"

	"github.com/quiesce-go/quiesce/internal/patience"
)

// TestMutantLog_Crowd: the crowd finds that what is not restarted is wrong.
func TestMutantLog_Crowd(t *testing.T) {
	patience.Until(t, "a record is wrong", func() (any, bool) {
		err := crowdLog(t, loneLog)
		return err, err != nil
	})
}
