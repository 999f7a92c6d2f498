package main

import (
	"github.com/mmcloughlin/avo/attr"
	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// avx2 has sixteen registers of 256 bits: room for two groups.
type avx2 struct {
	swap operand.Mem // VPSHUFB's mask that swaps the bytes of 16-bit words
}

func newAVX2() avx2 {
	swap := build.GLOBL("swap", attr.RODATA|attr.NOPTR)
	for i := 0; i < 32; i += 16 {
		build.DATA(i, operand.U64(0x0607_0405_0203_0001))
		build.DATA(i+8, operand.U64(0x0e0f_0c0d_0a0b_0809))
	}
	return avx2{swap}
}

func (avx2) name() string    { return "AVX2" }
func (avx2) inFlight() []int { return []int{2} }

func (avx2) register() reg.VecVirtual { return build.YMM() }
func (avx2) registerSize() int        { return 32 }
func (avx2) move(src, dst operand.Op) { build.VMOVDQU(src, dst) }

func (avx2) xor(a, dst reg.Register) { build.VPXOR(a, dst, dst) }

func (avx2) xor2(a, b, dst reg.Register) {
	build.VPXOR(a, dst, dst)
	build.VPXOR(b, dst, dst)
}

func (m avx2) rotateLeft(n int, src, dst reg.Register) {
	if n == 8 {
		build.VPSHUFB(m.swap, src, dst)
		return
	}
	t := build.YMM()
	build.VPSLLW(operand.U8(n), src, t)
	build.VPSRLW(operand.U8(16-n), src, dst)
	build.VPOR(t, dst, dst)
}
