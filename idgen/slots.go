package idgen

import "unsafe" // also for linkname

// slot has a processor's batch, or nil while a goroutine has it. Only goroutines that are pinned to
// the processor may use it.
//
// A sync.Pool does this too, but pins the goroutine to its processor twice for each ID, once for
// Get and once for Put. runtime.procPin is not part of Go's public interface, but it is on the
// runtime's list of names whose removal or change would break too many packages
// (go.dev/issue/67401).
type slot struct {
	*batch
	// No two processors write to one cache line; they fetch lines in pairs.
	_ [128 - unsafe.Sizeof(uintptr(0))]byte
}

//go:linkname procPin runtime.procPin
func procPin() int

//go:linkname procUnpin runtime.procUnpin
func procUnpin()

// here returns the batch of processor p, or nil. procPin has pinned the goroutine to it, until
// unpin is called. Code between the two must not wait. The two are separate so that the compiler
// inlines them. Processors that were added later have no slot.
func (g *Generator) here(p int) *batch {
	if uint(p) >= uint(len(g.slots)) {
		return nil
	}
	acquire(&g.slots[p])
	return g.slots[p].batch
}

func (g *Generator) unpin(p int) {
	if raceEnabled && uint(p) < uint(len(g.slots)) {
		release(&g.slots[p])
	}
	procUnpin()
}

// detach takes the batch of processor p and unpins the goroutine. If the processor has none, it
// returns a spare one.
func (g *Generator) detach(p int) *batch {
	b := g.here(p)
	if b != nil {
		g.slots[p].batch = nil
	}
	g.unpin(p)
	if b != nil {
		return b
	}
	if b, ok := g.spare.Get().(*batch); ok {
		return b
	}
	return &batch{size: minBatch}
}

// attach gives b to this processor, unless that has another by now. Numbers left in a run may be
// lower than ones that this goroutine, or this processor, has used since: both runs are dropped, so
// that each sees increasing ones.
func (g *Generator) attach(b *batch) {
	b.run.left = 0
	p := procPin()
	if other := g.here(p); other != nil {
		other.run.left = 0
	} else if uint(p) < uint(len(g.slots)) {
		g.slots[p].batch, b = b, nil
	}
	g.unpin(p)
	if b != nil {
		g.spare.Put(b)
	}
}
