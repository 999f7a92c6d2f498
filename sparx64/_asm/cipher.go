package main

import (
	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

const (
	steps    = 8
	branches = 2
	rounds   = 3

	// Sizes in bytes of the keys of a word, of a round of one branch, of one branch in a step, and
	// of a step.
	wordSize   = 2
	roundSize  = 2 * wordSize
	branchSize = rounds * roundSize
	stepSize   = branches * branchSize
)

// group holds the words x0, x1, x2, x3 of its blocks, named as in block.go.
type group [4]reg.VecVirtual

// branch holds the words of the left or the right branch of a group.
type branch struct{ x, y reg.VecVirtual }

func (g group) branches() [branches]branch { return [branches]branch{{g[0], g[1]}, {g[2], g[3]}} }

// each calls f for every group's left branch, then for the right ones.
func each(g []group, f func(b branch)) {
	for side := range branches {
		for _, w := range g {
			f(w.branches()[side])
		}
	}
}

// cipher emits encryption in the instructions of an isa.
type cipher struct {
	isa
	loop string // the label of the loop over the steps
}

func (c cipher) encrypt(keys reg.Register, g []group) {
	k := build.GP64()
	build.MOVQ(keys, k)
	c.twoSteps(func(step int) {
		var t []reg.VecVirtual
		for round := range rounds {
			key := operand.Mem{Base: k, Disp: step*stepSize + round*roundSize}
			c.withKeys(key, branchSize, g, c.mixX)
			if round == 0 {
				c.withKeys(key.Offset(wordSize), branchSize, g, c.mixY)
			}
			each(g, func(b branch) { c.rotateLeft(9, b.x, b.x) })
			each(g, func(b branch) { build.VPADDW(b.y, b.x, b.x) })
			each(g, func(b branch) { c.rotateLeft(2, b.y, b.y) })
			if round < rounds-1 { // includes the next round's key
				c.withKeys(key.Offset(roundSize+wordSize), branchSize, g, c.mixXY)
				continue
			}
			// y is about to become y^x, so this is (x0^x1)<<<8 without waiting for x.
			for i, w := range g {
				t = append(t, c.register())
				c.rotateLeft(8, w[1], t[i])
			}
			each(g, func(b branch) { c.xor(b.x, b.y) })
		}
		for i, w := range g {
			c.xor2(w[0], t[i], w[2])
			c.xor2(w[1], t[i], w[3])
			g[i] = group{w[2], w[3], w[0], w[1]}
		}
	}, func() { build.ADDQ(operand.U32(2*stepSize), k) })
	whitening := operand.Mem{Base: k}
	c.withKeys(whitening, branches*wordSize, g, c.mixX)
	c.withKeys(whitening.Offset(wordSize), branches*wordSize, g, c.mixY)
}

// twoSteps loops over the steps, two at a time: after two steps every word is back in the register
// that it started in.
func (c cipher) twoSteps(step func(i int), next func()) {
	n := build.GP64()
	build.MOVQ(operand.U32(steps/2), n)
	build.Label(c.loop)
	step(0)
	step(1)
	next()
	build.DECQ(n)
	build.JNZ(operand.LabelRef(c.loop))
}

// withKeys calls f with the key at left for the left branches, and with the key that is apart
// bytes further on for the right ones.
func (c cipher) withKeys(
	left operand.Mem, apart int, g []group, f func(key reg.Register, b branch),
) {
	for side := range branches {
		key := c.register()
		build.VPBROADCASTW(left.Offset(side*apart), key)
		for _, w := range g {
			f(key, w.branches()[side])
		}
	}
}

func (c cipher) mixX(key reg.Register, b branch)  { c.xor(key, b.x) }
func (c cipher) mixY(key reg.Register, b branch)  { c.xor(key, b.y) }
func (c cipher) mixXY(key reg.Register, b branch) { c.xor2(key, b.x, b.y) } // y ^= x ^ key
