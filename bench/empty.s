//go:build (amd64 || arm64) && gc && !purego

#include "textflag.h"

// func empty()
//
// It is what a call of the assembly costs before it does anything.
TEXT ·empty(SB), NOSPLIT, $0-0
	RET
