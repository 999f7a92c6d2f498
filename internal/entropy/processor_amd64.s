//go:build !purego

#include "textflag.h"

// func ticks() uint64
TEXT ·ticks(SB), NOSPLIT, $0-8
	RDTSC
	SHLQ $32, DX
	ORQ  DX, AX
	MOVQ AX, ret+0(FP)
	RET

// func rdrand() (word uint64, ok bool)
TEXT ·rdrand(SB), NOSPLIT, $0-9
	RDRANDQ AX
	SETCS ok+8(FP)
	MOVQ AX, word+0(FP)
	RET
