//go:build !linux

package storm

import (
	"os/exec"
	"runtime"
	"testing"
)

func command(string, ...string) *exec.Cmd { return exec.Command("") }

func (s *storm) attack(t testing.TB) (end func() string) {
	return func() string { return "no signals and no moves (there are none on " + runtime.GOOS + ")" }
}

func attackMain() {}
