//go:build !unix

package rcu_test

import (
	"testing"
	"time"
)

func cpuTime(t *testing.T) time.Duration {
	t.Skip("needs getrusage(2)")
	return 0
}
