package idgen

import "unsafe" // also for linkname

// slot holds the state that a goroutine pinned to its processor (a P of Go's scheduler) may use.
//
// A sync.Pool does this too, but pins the goroutine to its processor twice for each ID, once for
// Get and once for Put. runtime.procPin is not part of Go's public interface, but it is on the
// runtime's list of names whose removal or change would break too many packages
// (go.dev/issue/67401).
type slot struct {
	attached
	// No two processors write to one cache line; they fetch lines in pairs.
	_ [128 - unsafe.Sizeof(attached{})%128]byte
}

type attached struct {
	ready        // of local, or zero
	local *local // nil while it is detached
	away  *local // if local is nil: was here before, and no other has been used here since
}

// none is the slot of processors that were added later. It is never written.
var none slot

//go:linkname procPin runtime.procPin
func procPin() int

//go:linkname procUnpin runtime.procUnpin
func procUnpin()

// here returns the slot of processor p. procPin has pinned the goroutine to it, until unpin or
// detach is called. Code between the two must not wait. The two are separate so that the compiler
// inlines them.
func (g *Generator) here(p int) *slot {
	here := &none
	if uint(p) < uint(len(g.slots)) {
		here = &g.slots[p]
	}
	acquire(here)
	return here
}

func (g *Generator) unpin(here *slot) {
	release(here)
	procUnpin()
}

// detach unpins the goroutine and returns the processor's local, which it removes. If the processor
// has none, it returns an unused local.
func (g *Generator) detach(here *slot) *local {
	l := here.local
	if l != nil {
		l.ready = here.ready
		here.ready, here.local = ready{}, nil
	}
	if here.away != l {
		here.away = l
	}
	g.unpin(here)
	if l != nil {
		return l
	}
	return g.unused()
}

// attach makes l this processor's local if it may stay, unless the processor has another by now.
// The rest of a run is discarded if a later run may have been used here in the meantime: by another
// local, or by l's goroutine while another local is here.
func (g *Generator) attach(l *local, stay bool) {
	here := g.here(procPin())
	if here.away != l || here.local != nil || !stay {
		l.run = run{}
	}
	switch {
	case here.local != nil:
		here.run = run{}
	case stay && here != &none:
		here.ready, here.local = l.ready, l
		l = nil
	}
	g.unpin(here)
	if l != nil {
		g.spare.Put(l)
	}
}
