//go:build !purego

#include "textflag.h"

// block.go for 32 numbers at a time. A register holds one 16-bit word of each of
// eight numbers. Group A has the words x0, x1, x2, x3 of its numbers in V0, V1,
// V2, V3, group B in V4 … V7, C in V8 … V11, D in V12 … V15. V16 … V19 are
// scratch; V20 … V31 hold the keys of a step in order.

#define KEYS(k) \
	VLD4R.P 8(k), [V20.H8, V21.H8, V22.H8, V23.H8] \
	VLD4R.P 8(k), [V24.H8, V25.H8, V26.H8, V27.H8] \
	VLD4R.P 8(k), [V28.H8, V29.H8, V30.H8, V31.H8]

#define WHITEN(a0, a1, a2, a3) \
	VEOR V20.B16, a0.B16, a0.B16 \
	VEOR V21.B16, a1.B16, a1.B16 \
	VEOR V22.B16, a2.B16, a2.B16 \
	VEOR V23.B16, a3.B16, a3.B16

#define XOR(k, a, b, c, d) \
	VEOR k.B16, a.B16, a.B16 \
	VEOR k.B16, b.B16, b.B16 \
	VEOR k.B16, c.B16, c.B16 \
	VEOR k.B16, d.B16, d.B16

// V16 … V19 become the words rotated to the left.
#define ROTATE(left, right, a, b, c, d) \
	VSHL left, a.H8, V16.H8  \
	VSHL left, b.H8, V17.H8  \
	VSHL left, c.H8, V18.H8  \
	VSHL left, d.H8, V19.H8  \
	VSRI right, a.H8, V16.H8 \
	VSRI right, b.H8, V17.H8 \
	VSRI right, c.H8, V18.H8 \
	VSRI right, d.H8, V19.H8

// One round of a branch of the groups A, B, C, D. V16 … V19 keep y^x.
#define ROUND(kx, ky, ax, ay, bx, by, cx, cy, dx, dy) \
	XOR(kx, ax, bx, cx, dx)               \
	ROTATE($9, $7, ax, bx, cx, dx)        \
	XOR(ky, ay, by, cy, dy)               \
	VADD V16.H8, ay.H8, ax.H8             \
	VADD V17.H8, by.H8, bx.H8             \
	VADD V18.H8, cy.H8, cx.H8             \
	VADD V19.H8, dy.H8, dx.H8             \
	ROTATE($2, $14, ay, by, cy, dy)       \
	VEOR ax.B16, V16.B16, ay.B16          \
	VEOR bx.B16, V17.B16, by.B16          \
	VEOR cx.B16, V18.B16, cy.B16          \
	VEOR dx.B16, V19.B16, dy.B16

// The linear layer, with y^x of the left branch in t. The words do not move:
// the branches swap names.
#define MIX(t, a0, a1, a2, a3) \
	VREV16 t.B16, t.B16          \
	VEOR   t.B16, a2.B16, a2.B16 \
	VEOR   t.B16, a3.B16, a3.B16 \
	VEOR   a0.B16, a2.B16, a2.B16 \
	VEOR   a1.B16, a3.B16, a3.B16

#define STEP(a0, a1, a2, a3, b0, b1, b2, b3, c0, c1, c2, c3, d0, d1, d2, d3) \
	KEYS(R0)                                          \
	ROUND(V26, V27, a2, a3, b2, b3, c2, c3, d2, d3)   \
	ROUND(V28, V29, a2, a3, b2, b3, c2, c3, d2, d3)   \
	ROUND(V30, V31, a2, a3, b2, b3, c2, c3, d2, d3)   \
	ROUND(V20, V21, a0, a1, b0, b1, c0, c1, d0, d1)   \
	ROUND(V22, V23, a0, a1, b0, b1, c0, c1, d0, d1)   \
	ROUND(V24, V25, a0, a1, b0, b1, c0, c1, d0, d1)   \
	MIX(V16, a0, a1, a2, a3)                          \
	MIX(V17, b0, b1, b2, b3)                          \
	MIX(V18, c0, c1, c2, c3)                          \
	MIX(V19, d0, d1, d2, d3)

// The first 32 numbers.
DATA order<>+0(SB)/8, $0x0003000200010000
DATA order<>+8(SB)/8, $0x0007000600050004
DATA order<>+16(SB)/8, $0x000b000a00090008
DATA order<>+24(SB)/8, $0x000f000e000d000c
DATA order<>+32(SB)/8, $0x0013001200110010
DATA order<>+40(SB)/8, $0x0017001600150014
DATA order<>+48(SB)/8, $0x001b001a00190018
DATA order<>+56(SB)/8, $0x001f001e001d001c
GLOBL order<>(SB), RODATA|NOPTR, $64

// The words of eight numbers: all but x0 are those of the first one. V16 has the low bits of the
// first of 32 numbers.
#define NUMBERS(order, a0, a1, a2, a3) \
	VLD4R  (R2), [a0.H8, a1.H8, a2.H8, a3.H8] \
	VADD   order.H8, V16.H8, a0.H8            \
	VREV16 a0.B16, a0.B16

// A number is stored in little-endian byte order.
#define STORE(a0, a1, a2, a3) \
	VREV16 a0.B16, a0.B16 \
	VREV16 a1.B16, a1.B16 \
	VREV16 a2.B16, a2.B16 \
	VREV16 a3.B16, a3.B16 \
	VST4.P [a0.H8, a1.H8, a2.H8, a3.H8], 64(R1)

// func encryptNumbers(keys *schedule, dst *uint64, first *[4]uint16, n int)
TEXT ·encryptNumbers(SB), NOSPLIT, $0-32
	MOVD   keys+0(FP), R4
	MOVD   dst+8(FP), R1
	MOVD   first+16(FP), R2
	MOVD   n+24(FP), R3
	MOVHU  (R2), R6
	REV16W R6, R6           // the low bits of the next number
	MOVD   $order<>(SB), R7

numbers:
	SUBS $32, R3
	BLT  done
	VDUP R6, V16.H8
	VLD1 (R7), [V20.H8, V21.H8, V22.H8, V23.H8]
	NUMBERS(V20, V0, V1, V2, V3)
	NUMBERS(V21, V4, V5, V6, V7)
	NUMBERS(V22, V8, V9, V10, V11)
	NUMBERS(V23, V12, V13, V14, V15)
	ADD  $32, R6
	MOVD R4, R0
	MOVD $4, R5

steps:
	STEP(V0, V1, V2, V3, V4, V5, V6, V7, V8, V9, V10, V11, V12, V13, V14, V15)
	STEP(V2, V3, V0, V1, V6, V7, V4, V5, V10, V11, V8, V9, V14, V15, V12, V13)
	SUB  $1, R5
	CBNZ R5, steps

	VLD4R (R0), [V20.H8, V21.H8, V22.H8, V23.H8]
	WHITEN(V0, V1, V2, V3)
	WHITEN(V4, V5, V6, V7)
	WHITEN(V8, V9, V10, V11)
	WHITEN(V12, V13, V14, V15)
	STORE(V0, V1, V2, V3)
	STORE(V4, V5, V6, V7)
	STORE(V8, V9, V10, V11)
	STORE(V12, V13, V14, V15)
	B    numbers

done:
	RET
