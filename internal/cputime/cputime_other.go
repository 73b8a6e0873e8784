//go:build !unix && !windows

package cputime

import "time"

// Used returns 0: this system does not tell how much CPU time a program has used.
func Used() time.Duration { return 0 }
