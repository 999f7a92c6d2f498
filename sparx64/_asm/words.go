package main

import (
	"github.com/mmcloughlin/avo/attr"
	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// numbers emits the numbers of a run, as words of blocks. Only the low 16 bits, which are x0 with
// its bytes swapped, differ within the run.
type numbers struct {
	isa
	first operand.Mem // the words of the first number
	low   reg.VecVirtual
	order operand.Mem // what is added to low, by group
}

// startAt emits code that loads the first number.
func startAt(m isa, first reg.Register, order operand.Mem) numbers {
	n := numbers{isa: m, first: operand.Mem{Base: first}, low: m.register(), order: order}
	build.VPBROADCASTW(n.first, n.low)
	n.rotateLeft(8, n.low, n.low)
	return n
}

// order emits the table of the numbers in some groups. Instructions interleave words within lanes
// of 16 bytes, so the table has the order that store undoes.
func order(m isa, groups int) operand.Mem {
	table := build.GLOBL("order"+m.name(), attr.RODATA|attr.NOPTR)
	words, lanes := m.registerSize()/wordSize, m.registerSize()/16
	for group := range groups + 1 { // one more, for advance
		for word := range words {
			lane, place := word/8, word%8
			number := place/2*2*lanes + 2*lane + place%2
			build.DATA((group*words+word)*wordSize, operand.U16(group*words+number))
		}
	}
	return table
}

// group emits the numbers of the i-th group.
func (n numbers) group(i int) (g group) {
	for word := range g {
		g[word] = n.register()
		if word > 0 {
			build.VPBROADCASTW(n.first.Offset(word*wordSize), g[word])
		}
	}
	build.VPADDW(n.order.Offset(i*n.registerSize()), n.low, g[0])
	n.rotateLeft(8, g[0], g[0])
	return g
}

// advance emits a step over some groups.
func (n numbers) advance(groups int) {
	t := n.register()
	build.VPBROADCASTW(n.order.Offset(groups*n.registerSize()), t)
	build.VPADDW(t, n.low, n.low)
}

// store emits the blocks of a group as numbers, in their order.
func store(m isa, dst operand.Mem, g group) {
	for _, word := range g {
		m.rotateLeft(8, word, word)
	}
	for half, words := range []func(...operand.Op){build.VPUNPCKLWD, build.VPUNPCKHWD} {
		lows, highs := m.register(), m.register()
		words(g[1], g[0], lows)
		words(g[3], g[2], highs)
		blocks := m.register()
		build.VPUNPCKLDQ(highs, lows, blocks)
		m.move(blocks, dst.Offset(2*half*m.registerSize()))
		build.VPUNPCKHDQ(highs, lows, blocks)
		m.move(blocks, dst.Offset((2*half+1)*m.registerSize()))
	}
}
