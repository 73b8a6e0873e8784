//go:build linux && !android && gc && !purego && !race && !go1.28

#include "go_asm.h"
#include "textflag.h"
#include "rseq_amd64.h"

// Descriptors, filled at start-up (findSequences), and the code they describe.
GLOBL ·addCS(SB), NOPTR, $32
GLOBL ·gateCS(SB), NOPTR, $32
GLOBL ·addOursCS(SB), NOPTR, $32
GLOBL ·gateOursCS(SB), NOPTR, $32
GLOBL ·probeCS(SB), NOPTR, $32
DATA ·addCode(SB)/8, $·seqAdd(SB)
GLOBL ·addCode(SB), NOPTR|RODATA, $8
DATA ·gateCode(SB)/8, $·seqGateAdd(SB)
GLOBL ·gateCode(SB), NOPTR|RODATA, $8
DATA ·addOursCode(SB)/8, $·seqAddOurs(SB)
GLOBL ·addOursCode(SB), NOPTR|RODATA, $8
DATA ·gateOursCode(SB)/8, $·seqGateAddOurs(SB)
GLOBL ·gateOursCode(SB), NOPTR|RODATA, $8
DATA ·probeCode(SB)/8, $·rseqProbe(SB)
GLOBL ·probeCode(SB), NOPTR|RODATA, $8
DATA ·checkCode(SB)/8, $·seqCheck(SB)
GLOBL ·checkCode(SB), NOPTR|RODATA, $8

// A sequence starts with the comparison that finds its descriptor's address in the
// area and is over with its last instruction, the only store. If the thread was preempted,
// moved or signalled in between, the kernel lets it go on at the abort label.
// Nothing clears the descriptor's address afterwards: outside the sequence it
// means nothing, and the kernel clears it when it looks.

// seqAdd is blockAdd(b *Block, i int, delta int64), called by registers:
//
//	if cpu := area.cpu; cpu < rseqColumns { b.base[cpu<<16 + i*8] += delta }
//
// None needed on TSO: the add is a store, not passed by earlier loads or
// stores. It may be passed by later loads; Fence orders those.
TEXT ·seqAdd(SB), NOSPLIT|NOFRAME, $0-0
	MOVQ CX, DI
	LOAD_SHARED(·addCS, slow)

rearm:
	ARM_KEPT(slow)
	SHLQ $16, CX
	ADDQ DI, (R13)(CX*1)
	RET
	AGAIN_SHARED(rearm, slow)

slow:
	MOVQ DI, CX
	GO(·blockAddGo)

// seqAddOurs is seqAdd without cgo.
TEXT ·seqAddOurs(SB), NOSPLIT|NOFRAME, $0-0
	MOVQ CX, DI
	LOAD_OURS(·addOursCS, slow)

rearm:
	ARM_KEPT(slow)
	SHLQ $16, CX
	ADDQ DI, (R13)(CX*1)
	RET
	AGAIN_OURS(rearm, slow)

slow:
	MOVQ DI, CX
	GO(·blockAddGo)

// seqGateAdd is gateAdd: blockAdd with another slow path.
TEXT ·seqGateAdd(SB), NOSPLIT|NOFRAME, $0-0
	MOVQ CX, DI
	LOAD_SHARED(·gateCS, slow)

rearm:
	ARM_KEPT(slow)
	SHLQ $16, CX
	ADDQ DI, (R13)(CX*1)
	RET
	AGAIN_SHARED(rearm, slow)

slow:
	MOVQ DI, CX
	GO(·gateAddGo)

// seqGateAddOurs is seqGateAdd without cgo.
TEXT ·seqGateAddOurs(SB), NOSPLIT|NOFRAME, $0-0
	MOVQ CX, DI
	LOAD_OURS(·gateOursCS, slow)

rearm:
	ARM_KEPT(slow)
	SHLQ $16, CX
	ADDQ DI, (R13)(CX*1)
	RET
	AGAIN_OURS(rearm, slow)

slow:
	MOVQ DI, CX
	GO(·gateAddGo)

// seqCheck is func(a, b, c, d, e int) (int, int, int).
TEXT ·seqCheck(SB), NOSPLIT|NOFRAME, $0-0
	LEAQ (AX)(BX*2), AX
	LEAQ (BX)(CX*4), BX
	LEAQ (CX)(DI*8), CX
	LEAQ (SI)(SI*2), SI
	ADDQ SI, CX
	RET

// func areaCPU() int64
TEXT ·areaCPU(SB), NOSPLIT|NOFRAME, $0-8
	LOAD_AREA
	JEQ  none
	MOVL 4(AX), AX
	MOVQ AX, ret+0(FP)
	RET

none:
	MOVQ $0x7fffffffffffffff, AX
	MOVQ AX, ret+0(FP)
	RET

// func getArea() unsafe.Pointer
TEXT ·getArea(SB), NOSPLIT|NOFRAME, $0-8
	LOAD_AREA
	MOVQ AX, ret+0(FP)
	RET

// func guess() uintptr
TEXT ·guess(SB), NOSPLIT|NOFRAME, $0-8
	MOVQ 8(FS), AX
	MOVQ AX, ret+0(FP)
	RET

// func setArea(a unsafe.Pointer)
TEXT ·setArea(SB), NOSPLIT|NOFRAME, $0-8
	MOVQ a+0(FP), AX
	MOVQ AX, 0(FS)
	RET

// func currentM() unsafe.Pointer
TEXT ·currentM(SB), NOSPLIT|NOFRAME, $0-8
	MOVQ (TLS), AX
	MOVQ 48(AX), AX // g.m
	MOVQ AX, ret+0(FP)
	RET

// func rseqProbe(n uint64) bool
TEXT ·rseqProbe(SB), NOSPLIT|NOFRAME, $0-9
	LOAD_AREA
	JEQ  none
	MOVQ n+0(FP), CX
	LEAQ ·probeCS(SB), DX
	MOVQ DX, 8(AX)
	CMPQ DX, 8(AX) // where sequences start

spin:
	DECQ CX
	JNE  spin
	MOVB $0, ret+8(FP)
	RET
	SIGNATURE
	MOVB $1, ret+8(FP)
	RET

none:
	MOVB $0, ret+8(FP)
	RET

// func cpu() int
TEXT ·cpu(SB), NOSPLIT|NOFRAME, $0-8
	MOVL ·rseqColumns(SB), R10
	TESTL R10, R10
	JEQ  norseq
	LOAD_AREA
	JEQ  slow
	MOVL 4(AX), AX
	CMPL AX, R10
	JCC  slow
	MOVQ AX, ret+0(FP)
	RET

norseq:
	CMPL ·useRDPID(SB), $0
	JEQ  slow
	RDPID AX
	ANDL $0xfff, AX
	MOVQ AX, ret+0(FP)
	RET

slow:
	JMP ·cpuSlow(SB)
