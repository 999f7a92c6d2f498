// Command asm writes run_amd64.s, the cipher of block.go for many numbers at a time.
//
// A register holds one 16-bit word of each of as many blocks as fit; four registers are a group of
// that many blocks. Several groups are in flight, because each operation waits for the previous
// one. A round key is broadcast to a register when it is needed: broadcasting all keys in advance
// was not faster, and would leave a copy of them on the stack.
package main

import (
	"fmt"

	"github.com/mmcloughlin/avo/attr"
	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// isa is an instruction set.
type isa interface {
	// name is the suffix of the functions' names.
	name() string
	// inFlight lists the numbers of groups in flight. When too few blocks are left for the first
	// number, the code continues with the next.
	inFlight() []int

	register() reg.VecVirtual
	// registerSize is the size in bytes.
	registerSize() int
	// move loads or stores a register.
	move(src, dst operand.Op)

	xor(a, dst reg.Register)
	// xor2 computes dst ^= a ^ b.
	xor2(a, b, dst reg.Register)
	// rotateLeft rotates 16-bit words.
	rotateLeft(n int, src, dst reg.Register)
}

func main() {
	build.ConstraintExpr("!purego")
	for _, m := range []isa{newAVX2(), avx512{}} {
		run(m)
	}
	build.Generate()
}

// run emits a function that encrypts consecutive numbers in a loop, given the words of the first
// number. The numbers differ in their low 16 bits only.
func run(m isa) {
	table := order(m, m.inFlight()[0])
	build.TEXT("encrypt"+m.name(), attr.NOSPLIT,
		"func(keys *[100]uint16, dst *uint64, first *[4]uint16, n int)")
	keys := build.Load(build.Param("keys"), build.GP64())
	dst := build.Load(build.Param("dst"), build.GP64())
	next := startAt(m, build.Load(build.Param("first"), build.GP64()), table)
	n := build.Load(build.Param("n"), build.GP64())

	groupSize := len(group{}) * m.registerSize()
	for _, groups := range m.inFlight() {
		again, done := fmt.Sprintf("groups%d", groups), fmt.Sprintf("done%d", groups)
		size := groups * groupSize

		build.Label(again)
		build.CMPQ(n, operand.U32(size/8))
		build.JB(operand.LabelRef(done))
		var g []group
		for i := range groups {
			g = append(g, next.group(i))
		}
		next.advance(groups)
		cipher{m, fmt.Sprintf("steps%d", groups)}.encrypt(keys, g)
		for i := range groups {
			store(m, operand.Mem{Base: dst, Disp: i * groupSize}, g[i])
		}
		build.ADDQ(operand.U32(size), dst)
		build.SUBQ(operand.U32(size/8), n)
		build.JMP(operand.LabelRef(again))
		build.Label(done)
	}
	build.VZEROUPPER()
	build.RET()
}
