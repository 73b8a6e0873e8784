//go:build gc && !purego

#include "textflag.h"

// func cycles() uint64
TEXT ·cycles(SB), NOSPLIT|NOFRAME, $0-8
	RDTSC
	SHLQ $32, DX
	ORQ  DX, AX
	MOVQ AX, ret+0(FP)
	RET

// func cyclesOrdered() uint64
//
// LFENCE completes when every earlier instruction has, and nothing later
// starts before it does. RDTSCP would leave later instructions free to start
// early, and needs a feature bit.
TEXT ·cyclesOrdered(SB), NOSPLIT|NOFRAME, $0-8
	LFENCE
	RDTSC
	SHLQ $32, DX
	ORQ  DX, AX
	MOVQ AX, ret+0(FP)
	RET

// func pause()
TEXT ·pause(SB), NOSPLIT|NOFRAME, $0-0
	PAUSE
	RET
