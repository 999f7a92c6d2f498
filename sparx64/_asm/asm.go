// Command asm writes batch_amd64.s: block.go on 32 blocks at a time.
//
// A register has one 16-bit word of each of 16 blocks. Two such groups are in
// flight, because every operation waits for the one before it. A round key is
// spread over a register at the moment it is needed: spreading all of them in
// advance was not faster, and would leave a copy of them on the stack.
package main

import (
	"github.com/mmcloughlin/avo/attr"
	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

const (
	groups     = 2
	groupSize  = 16 * 8        // bytes of a group's blocks
	steps      = 8             // of the cipher
	stepSize   = 2 * 2 * 3 * 2 // bytes of a step's keys: branches, words, rounds
	branchSize = stepSize / 2
	roundSize  = branchSize / 3
	wordSize   = roundSize / 2
)

// group has the words x0, x1, x2, x3 of its blocks, as block.go calls them.
type group [4]reg.VecVirtual

type pair struct{ x, y reg.VecVirtual }

func (g group) branches() [2]pair { return [2]pair{{g[0], g[1]}, {g[2], g[3]}} }

// swap exchanges the bytes of every word.
var swap operand.Mem

func main() {
	build.ConstraintExpr("!purego")
	swap = build.GLOBL("swap", attr.RODATA|attr.NOPTR)
	for i := 0; i < 32; i += 16 {
		build.DATA(i, operand.U64(0x0607_0405_0203_0001))
		build.DATA(i+8, operand.U64(0x0e0f_0c0d_0a0b_0809))
	}
	batch("encryptBlocks", encrypt)
	batch("decryptBlocks", decrypt)
	build.Generate()
}

// batch is the loop over the blocks.
func batch(name string, crypt func(keys reg.Register, g []group)) {
	build.TEXT(name, attr.NOSPLIT, "func(keys *[100]uint16, dst, src *uint64, n int)")
	keys := build.Load(build.Param("keys"), build.GP64())
	dst := build.Load(build.Param("dst"), build.GP64())
	src := build.Load(build.Param("src"), build.GP64())
	n := build.Load(build.Param("n"), build.GP64())

	build.Label("blocks")
	build.CMPQ(n, operand.U32(groups*groupSize/8))
	build.JB(operand.LabelRef("done"))
	var g []group
	for i := range groups {
		g = append(g, load(operand.Mem{Base: src, Disp: i * groupSize}))
	}
	crypt(keys, g)
	for i := range groups {
		store(operand.Mem{Base: dst, Disp: i * groupSize}, g[i])
	}
	build.ADDQ(operand.U32(groups*groupSize), src)
	build.ADDQ(operand.U32(groups*groupSize), dst)
	build.SUBQ(operand.U32(groups*groupSize/8), n)
	build.JMP(operand.LabelRef("blocks"))

	build.Label("done")
	build.VZEROUPPER()
	build.RET()
}

func encrypt(keys reg.Register, g []group) {
	k := build.GP64()
	build.MOVQ(keys, k)
	twoSteps(g, func(step int) {
		var t []reg.VecVirtual
		for round := range 3 {
			for word := range 2 {
				xorKeys(k, step*stepSize+round*roundSize+word*wordSize, word, g)
				if word == 0 {
					each(g, func(b pair) { rotateLeft(b.x, 9) })
				}
			}
			each(g, func(b pair) { build.VPADDW(b.y, b.x, b.x) })
			each(g, func(b pair) { rotateLeft(b.y, 2) })
			if round == 2 {
				// y is about to become y^x, so this is (x0^x1)<<<8 without the wait for x.
				for i := range g {
					t = append(t, build.YMM())
					build.VPSHUFB(swap, g[i][1], t[i])
				}
			}
			each(g, func(b pair) { build.VPXOR(b.x, b.y, b.y) })
		}
		for i, w := range g {
			build.VPXOR(t[i], w[2], w[2])
			build.VPXOR(t[i], w[3], w[3])
			build.VPXOR(w[0], w[2], w[2])
			build.VPXOR(w[1], w[3], w[3])
			g[i] = group{w[2], w[3], w[0], w[1]}
		}
	}, func() { build.ADDQ(operand.U32(2*stepSize), k) })
	whiten(k, 0, g)
}

func decrypt(keys reg.Register, g []group) {
	whiten(keys, steps*stepSize, g)
	k := build.GP64()
	build.LEAQ(operand.Mem{Base: keys, Disp: (steps - 2) * stepSize}, k)
	twoSteps(g, func(step int) {
		for i, w := range g {
			t := build.YMM()
			build.VPXOR(w[0], w[1], w[1])
			build.VPXOR(w[2], w[3], w[3])
			build.VPSHUFB(swap, w[3], t)
			build.VPXOR(w[2], w[0], w[0])
			build.VPXOR(w[3], w[1], w[1]) // the next x2^x3: both have x2 and t in them
			build.VPXOR(t, w[0], w[0])
			g[i] = group{w[2], w[3], w[0], w[1]}
		}
		for round := 2; round >= 0; round-- {
			if round < 2 { // the first has been done above
				each(g, func(b pair) { build.VPXOR(b.x, b.y, b.y) })
			}
			each(g, func(b pair) { rotateLeft(b.y, 16-2) })
			each(g, func(b pair) { build.VPSUBW(b.y, b.x, b.x) })
			each(g, func(b pair) { rotateLeft(b.x, 16-9) })
			for word := range 2 {
				xorKeys(k, (1-step)*stepSize+round*roundSize+word*wordSize, word, g)
			}
		}
	}, func() { build.SUBQ(operand.U32(2*stepSize), k) })
}

// twoSteps loops over the steps, two at a time: after two of them every word
// is in the register that it started in.
func twoSteps(g []group, step func(i int), next func()) {
	n := build.GP64()
	build.MOVQ(operand.U32(steps/2), n)
	build.Label("steps")
	step(0)
	step(1)
	next()
	build.DECQ(n)
	build.JNZ(operand.LabelRef("steps"))
}

// xorKeys mixes the left branch's key at offset, and the right one's that
// belongs to it, into word 0 (x) or 1 (y) of their branches.
func xorKeys(keys reg.Register, offset, word int, g []group) {
	for branch := range 2 {
		xorKey(operand.Mem{Base: keys, Disp: offset + branch*branchSize}, 2*branch+word, g)
	}
}

func whiten(keys reg.Register, offset int, g []group) {
	for word := range 4 {
		xorKey(operand.Mem{Base: keys, Disp: offset + word*wordSize}, word, g)
	}
}

func xorKey(key operand.Mem, word int, g []group) {
	k := build.YMM()
	build.VPBROADCASTW(key, k)
	for _, w := range g {
		build.VPXOR(k, w[word], w[word])
	}
}

func each(g []group, f func(b pair)) {
	for branch := range 2 {
		for _, w := range g {
			f(w.branches()[branch])
		}
	}
}

func rotateLeft(w reg.VecVirtual, n int) {
	t := build.YMM()
	build.VPSLLW(operand.U8(n), w, t)
	build.VPSRLW(operand.U8(16-n), w, w)
	build.VPOR(t, w, w)
}

// load splits sixteen blocks into words. The blocks get out of order on the
// way; store brings them back.
func load(src operand.Mem) (g group) {
	var low, high [2]reg.VecVirtual // the halves of eight blocks each
	for i := range low {
		blocks := build.YMM()
		low[i], high[i] = build.YMM(), build.YMM()
		build.VMOVDQU(src.Offset(64*i), blocks)
		build.VSHUFPS(operand.U8(0x88), src.Offset(64*i+32), blocks, low[i])
		build.VSHUFPS(operand.U8(0xdd), src.Offset(64*i+32), blocks, high[i])
	}
	g[0], g[1] = splitHalves(high)
	g[2], g[3] = splitHalves(low)
	return g
}

func store(dst operand.Mem, g group) {
	high, low := joinHalves(g[0], g[1]), joinHalves(g[2], g[3])
	for i := range low {
		blocks := build.YMM()
		build.VPUNPCKLDQ(high[i], low[i], blocks)
		build.VMOVDQU(blocks, dst.Offset(64*i))
		build.VPUNPCKHDQ(high[i], low[i], blocks)
		build.VMOVDQU(blocks, dst.Offset(64*i+32))
	}
}

const oddWords = operand.U8(0xaa)

func splitHalves(h [2]reg.VecVirtual) (x, y reg.VecVirtual) {
	x, y = build.YMM(), build.YMM()
	build.VPSRLD(operand.U8(16), h[0], x)
	build.VPBLENDW(oddWords, h[1], x, x)
	build.VPSLLD(operand.U8(16), h[1], y)
	build.VPBLENDW(oddWords, y, h[0], y)
	return x, y
}

func joinHalves(x, y reg.VecVirtual) (h [2]reg.VecVirtual) {
	h = [2]reg.VecVirtual{build.YMM(), build.YMM()}
	build.VPSLLD(operand.U8(16), x, h[0])
	build.VPBLENDW(oddWords, h[0], y, h[0])
	build.VPSRLD(operand.U8(16), y, h[1])
	build.VPBLENDW(oddWords, x, h[1], h[1])
	return h
}
