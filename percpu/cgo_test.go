//go:build cgo && quiesce_cgo

package percpu_test

// With the tag quiesce_cgo the test binary is a cgo program, whose threads
// libc starts.
import _ "runtime/cgo"
