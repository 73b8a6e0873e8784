//go:build !cgo && linux && !android && (amd64 || arm64) && gc && !purego && !race && !go1.28

package asm

import "errors"

// glibcRSEQ is only called where something other than cmd/cgo loaded a libc.
func glibcRSEQ() (offset uintptr, size uint32, err error) {
	return 0, 0, errors.New("a libc was loaded into this program, which was built without cgo")
}
