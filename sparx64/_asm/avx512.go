package main

import (
	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/ir"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// avx512 has 32 registers of 512 bits: room for four groups. It uses AVX-512F, BW and VBMI2. The
// bursts are short, and the processors that lower their clock a lot for 512-bit registers lack
// VBMI2, so it uses the full width: the same code with 256-bit registers took twice the time
// (256 blocks on Zen 5, Go 1.26: 1.4 ns a block instead of 0.7 ns).
type avx512 struct{}

func (avx512) name() string    { return "AVX512" }
func (avx512) inFlight() []int { return []int{4, 2} }

func (avx512) register() reg.VecVirtual { return build.ZMM() }
func (avx512) registerSize() int        { return 64 }
func (avx512) move(src, dst operand.Op) { build.VMOVDQU64(src, dst) }

func (avx512) xor(a, dst reg.Register) { build.VPXORQ(a, dst, dst) }

func (avx512) xor2(a, b, dst reg.Register) {
	const xorOfThree = operand.U8(0x96) // the truth table
	build.VPTERNLOGQ(xorOfThree, a, b, dst)
}

func (avx512) rotateLeft(n int, src, dst reg.Register) { funnel("VPSHLDW", n, src, src, dst) }

// funnel emits an instruction that shifts the bits of a into those of b. Avo does not know these
// instructions.
func funnel(opcode string, n int, a, b, dst reg.Register) {
	build.Instruction(&ir.Instruction{
		Opcode:   opcode,
		Operands: []operand.Op{operand.U8(n), a, b, dst},
		Inputs:   []operand.Op{a, b},
		Outputs:  []operand.Op{dst},
		ISA:      []string{"AVX512VBMI2"},
	})
}
