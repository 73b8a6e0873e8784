//go:build linux && !android && arm64 && gc && !purego && !race && !go1.28

package asm

// See rseq_asm_unsafe.go for the facts this relies on.

import (
	"errors"
	"unsafe"

	"github.com/quiesce-go/quiesce/internal/pin"
)

// rseqSignature stands before every abort handler: BRK #0x45e0, which
// glibc registers with too.
const rseqSignature = 0xd428bc00

var signatureBytes = []byte{0x00, 0xbc, 0x28, 0xd4}

// How the code of a sequence begins and ends, for findSequences.
const startInside = 0 // bytes of startBytes that belong to the sequence

var (
	startBytes  = []byte{0x05, 0x04, 0x00, 0xf9} // MOVD R5, 8(R0)
	addCommit   = []byte{0xca, 0xfc, 0x9f, 0xc8} // STLR R10, (R6)
	storeCommit = addCommit
	claimCommit = addCommit
	stackCommit = addCommit
	probeCommit = []byte{0xff, 0x43, 0x00, 0x39} // MOVB ZR, ret+8(FP)
)

// layoutCheck tests that g.m is where we read it and that TPIDR_EL0 is unused.
func layoutCheck() error {
	pin.Pin()
	defer pin.Unpin()
	// The first word of an m is its g0, whose m is this m.
	m := currentM()
	if m == nil {
		return errors.New("g.m is not where it was")
	}
	g0 := *(*unsafe.Pointer)(m)
	if g0 == nil || *(*unsafe.Pointer)(unsafe.Add(g0, 48)) != m {
		return errors.New("g.m is not where it was")
	}
	if rawArea() != nil {
		return errors.New("TPIDR_EL0 is in use")
	}
	return nil
}

// rawArea returns TPIDR_EL0.
func rawArea() unsafe.Pointer

const calls = true // everything is called by its name

const nameAdd, nameGateAdd, nameTryLock, nameClaim, nameLogWrite = "blockAdd", "gateAdd", "blockTryLock", "seqClaim", "logWrite"

func sequencesOurs() []sequence { return nil }

// See rseq_asm.go.
func blockAdd(b *Block, i int, delta int64)
func gateAdd(b *Block, i int, delta int64)
func blockTryLock(b *Block, i int) (*Lock, int)

//go:noescape
func logWrite(l *Log, event uint32, payload []byte) bool

func claim(c *Claims, v int64, other func(*Claims, int64) *int64) *int64 {
	if w := seqClaim(c, v); w != nil {
		return w
	}
	return other(c, v)
}

// seqClaim is claim that returns nil where that calls other.
//
//go:noescape
func seqClaim(c *Claims, v int64) *int64
