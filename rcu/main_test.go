package rcu_test

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"
)

// TestMain checks that the tests leave no goroutine of the package behind: an idle Domain has none.
func TestMain(m *testing.M) {
	code := m.Run()
	for end := time.Now().Add(soon); code == 0; time.Sleep(time.Millisecond) {
		stacks := make([]byte, 1<<20)
		stacks = stacks[:runtime.Stack(stacks, true)]
		if !strings.Contains(string(stacks), "rcu.(*Domain)") {
			break
		}
		if time.Now().After(end) {
			fmt.Printf("goroutines are left:\n%s", stacks)
			code = 1
		}
	}
	os.Exit(code)
}
