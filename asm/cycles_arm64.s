//go:build gc && !purego

#include "textflag.h"

// func cycles() uint64
TEXT ·cycles(SB), NOSPLIT|NOFRAME, $0-8
	MRS  CNTVCT_EL0, R0
	MOVD R0, ret+0(FP)
	RET

// func cyclesOrdered() uint64
TEXT ·cyclesOrdered(SB), NOSPLIT|NOFRAME, $0-8
	ISB  $15
	MRS  CNTVCT_EL0, R0
	MOVD R0, ret+0(FP)
	RET

// func pause()
TEXT ·pause(SB), NOSPLIT|NOFRAME, $0-0
	ISB $15
	RET
