//go:build !purego

#include "textflag.h"

// block.go for 32 blocks at a time. A register holds one 16-bit word of each of
// eight blocks. Group A has the words x0, x1, x2, x3 of its blocks in V3, V2,
// V1, V0, as LD4 leaves them, group B in V7 … V4, C in V11 … V8, D in V15 … V12.
// V16 … V19 are scratch; V20 … V31 hold the keys of a step in order.

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

// func encryptBlocks(keys *schedule, dst, src *uint64, n int)
TEXT ·encryptBlocks(SB), NOSPLIT, $0-32
	MOVD keys+0(FP), R4
	MOVD dst+8(FP), R1
	MOVD src+16(FP), R2
	MOVD n+24(FP), R3

blocks:
	SUBS $32, R3
	BLT  done
	VLD4.P 64(R2), [V0.H8, V1.H8, V2.H8, V3.H8]
	VLD4.P 64(R2), [V4.H8, V5.H8, V6.H8, V7.H8]
	VLD4.P 64(R2), [V8.H8, V9.H8, V10.H8, V11.H8]
	VLD4.P 64(R2), [V12.H8, V13.H8, V14.H8, V15.H8]
	MOVD R4, R0
	MOVD $4, R5

steps:
	STEP(V3, V2, V1, V0, V7, V6, V5, V4, V11, V10, V9, V8, V15, V14, V13, V12)
	STEP(V1, V0, V3, V2, V5, V4, V7, V6, V9, V8, V11, V10, V13, V12, V15, V14)
	SUB  $1, R5
	CBNZ R5, steps

	VLD4R (R0), [V20.H8, V21.H8, V22.H8, V23.H8]
	WHITEN(V3, V2, V1, V0)
	WHITEN(V7, V6, V5, V4)
	WHITEN(V11, V10, V9, V8)
	WHITEN(V15, V14, V13, V12)
	VST4.P [V0.H8, V1.H8, V2.H8, V3.H8], 64(R1)
	VST4.P [V4.H8, V5.H8, V6.H8, V7.H8], 64(R1)
	VST4.P [V8.H8, V9.H8, V10.H8, V11.H8], 64(R1)
	VST4.P [V12.H8, V13.H8, V14.H8, V15.H8], 64(R1)
	B    blocks

done:
	RET
