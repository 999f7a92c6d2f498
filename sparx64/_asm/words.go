package main

import (
	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// load splits a group's blocks into words. The blocks get out of order on the
// way; store brings them back.
func load(m isa, src operand.Mem) (g group) {
	var low, high [2]reg.VecVirtual // the 32-bit halves of a half of the blocks each
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

// exchange makes, of each two 32-bit words in the same place, one of their
// upper halves and one of their lower halves. Twice is as if it never was.
func exchange(m isa, a, b reg.Register) (upper, lower reg.VecVirtual) {
	upper, lower = m.register(), m.register()
	m.highs(a, b, upper)
	m.lows(a, b, lower)
	return upper, lower
}
