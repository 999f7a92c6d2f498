//go:build !nolinkname

package idgen

import (
	"runtime"
	"sync"
	"unsafe" // also for linkname
)

// locals keeps one local for each processor (a P of Go's scheduler).
//
// A sync.Pool does this too, and the build tag nolinkname selects it. It pins the goroutine to its
// processor twice for each ID, once for Get and once for Put; bench/RESULTS.md has the gain from
// pinning it once. runtime.procPin is not part of Go's public interface, but it is on the
// runtime's list of names whose removal or change would break too many packages
// (go.dev/issue/67401).
type locals struct {
	slots []slot     // by processor
	spare *sync.Pool // of locals without a processor
}

// slot is what a goroutine that is pinned to its processor may use.
type slot struct {
	attached
	// No two processors write to one cache line; they fetch lines in pairs.
	_ [128 - unsafe.Sizeof(attached{})%128]byte
}

type attached struct {
	ready        // of local, or zero
	local *local // nil while it is detached
	away  *local // was detached from here, and no other has been used here since
}

type pinned = *slot

// none is the slot of processors that were added later. It is never written.
var none slot

func (s *locals) start() {
	s.spare = new(sync.Pool)
	s.slots = make([]slot, max(runtime.NumCPU(), runtime.GOMAXPROCS(0)))
}

//go:linkname procPin runtime.procPin
func procPin() int

//go:linkname procUnpin runtime.procUnpin
func procUnpin()

// here returns the slot of processor p. procPin has pinned the goroutine to it, until unpin or
// detach is called. Code between the two must not wait. The two are separate so that the compiler
// inlines them.
func (s *locals) here(p int) pinned {
	here := &none
	if uint(p) < uint(len(s.slots)) {
		here = &s.slots[p]
	}
	acquire(here)
	return here
}

func (s *locals) unpin(here pinned) {
	release(here)
	procUnpin()
}

// detach unpins the goroutine and removes the local from the processor. If there is none, it
// returns another that is not in use.
func (s *locals) detach(here pinned) *local {
	l := here.local
	if l != nil {
		l.ready = here.ready
		here.ready, here.local = ready{}, nil
	}
	if here.away != l {
		here.away = l
	}
	s.unpin(here)
	if l != nil {
		return l
	}
	return s.unused()
}

// attach makes l this processor's local if it may stay, unless the processor has one again. The
// rest of l's run is given up if another local may have taken a later one here in the meantime.
func (s *locals) attach(l *local, stay bool) {
	here := s.here(procPin())
	if !stay {
		l.run = run{}
	} else if here.away != l {
		l.run.left = 0
	}
	if here.away != nil {
		here.away = nil
	}
	if stay && here.local == nil && here != &none {
		here.ready, here.local = l.ready, l
		l = nil
	}
	s.unpin(here)
	if l != nil && s.spare != nil {
		s.spare.Put(l)
	}
}
