//go:build !purego

#include "textflag.h"

// func ticks() uint64
TEXT ·ticks(SB), NOSPLIT, $0-8
	RDTSC
	SHLQ $32, DX
	ORQ  DX, AX
	MOVQ AX, ret+0(FP)
	RET

// func rdrand() (word uint64)
// The instruction sets AX to 0 if it has no random number.
TEXT ·rdrand(SB), NOSPLIT, $0-8
	RDRANDQ AX
	MOVQ AX, word+0(FP)
	RET
