//go:build linux && !android && amd64 && gc && !purego && !race && !go1.28

package asm

// See rseq_asm_unsafe.go for the facts this relies on.

import (
	"errors"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/quiesce-go/quiesce/internal/pin"
)

// rseqSignature stands before every abort handler. It is the operand of
// a UD1, so that it is no valid code; glibc registers with the same.
const rseqSignature = 0x53053053

var signatureBytes = []byte{0x0f, 0xb9, 0x3d, 0x53, 0x30, 0x05, 0x53}

// How the code of a sequence begins and ends, for findSequences.
const startInside = 4 // bytes of startBytes that belong to the sequence

var (
	startBytes  = []byte{0x48, 0x3b, 0x50, 0x08}       // CMPQ DX, 8(AX)
	addCommit   = []byte{0x49, 0x01, 0x7c, 0x0d, 0x00} // ADDQ DI, (R13)(CX*1)
	storeCommit = []byte{0x4d, 0x89, 0x4c, 0x0d, 0x00} // MOVQ R9, (R13)(CX*1)
	claimCommit = []byte{0x4b, 0x89, 0x5c, 0x15, 0x00} // MOVQ BX, (R13)(R10*1)
	stackCommit = []byte{0x4c, 0x89, 0x09}             // MOVQ R9, (CX)
	probeCommit = []byte{0xc6, 0x44, 0x24, 0x10, 0x00} // MOVB $0, ret+8(FP)
)

// layoutCheck tests that FS:0 and FS:8, which are m.tls[1] and m.tls[2], are words of this
// thread's m that nobody uses. (Under libc FS:0 is the thread pointer itself, as the ABI wants.)
func layoutCheck() error {
	pin.Pin()
	defer pin.Unpin()
	const archGetFS, mSize = 0x1003, 4096
	var fs uintptr
	if _, _, errno := unix.RawSyscall(unix.SYS_ARCH_PRCTL, archGetFS, uintptr(unsafe.Pointer(&fs)), 0); errno != 0 {
		return errno
	}
	m := uintptr(currentM())
	if fs <= m || fs-m > mSize {
		return errors.New("FS does not point into the runtime's m")
	}
	if getArea() != nil || guess() != 0 {
		return errors.New("FS:0 or FS:8 is in use")
	}
	return nil
}

// guess returns FS:8.
func guess() uintptr
