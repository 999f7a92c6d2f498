package main

import (
	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// load splits a group's blocks into words. This changes the order of the blocks; store restores
// it.
func load(m isa, src operand.Mem) (g group) {
	var low, high [2]reg.VecVirtual // 32-bit halves, of one half of the blocks each
	for i := range low {
		blocks := m.register()
		low[i], high[i] = m.register(), m.register()
		m.move(src.Offset(2*i*m.registerSize()), blocks)
		next := src.Offset((2*i + 1) * m.registerSize())
		build.VSHUFPS(operand.U8(0x88), next, blocks, low[i])
		build.VSHUFPS(operand.U8(0xdd), next, blocks, high[i])
	}
	g[0], g[1] = exchange(m, high[1], high[0])
	g[2], g[3] = exchange(m, low[1], low[0])
	return g
}

func store(m isa, dst operand.Mem, g group) {
	var low, high [2]reg.VecVirtual
	high[1], high[0] = exchange(m, g[0], g[1])
	low[1], low[0] = exchange(m, g[2], g[3])
	for i := range low {
		blocks := m.register()
		build.VPUNPCKLDQ(high[i], low[i], blocks)
		m.move(blocks, dst.Offset(2*i*m.registerSize()))
		build.VPUNPCKHDQ(high[i], low[i], blocks)
		m.move(blocks, dst.Offset((2*i+1)*m.registerSize()))
	}
}

// exchange turns each pair of 32-bit words in the same place into their upper halves and their
// lower halves. Applied twice, it restores the words.
func exchange(m isa, a, b reg.Register) (upper, lower reg.VecVirtual) {
	upper, lower = m.register(), m.register()
	m.highs(a, b, upper)
	m.lows(a, b, lower)
	return upper, lower
}
