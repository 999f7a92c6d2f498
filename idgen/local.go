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
	slots []slot    // by processor
	spare sync.Pool // locals without a slot
}

type slot struct {
	owned
	// No two processors write to one cache line; they fetch lines in pairs.
	_ [128 - unsafe.Sizeof(owned{})%128]byte
}

type owned struct {
	local *local
	away  *local // was taken from here, and no other has been used here since
}

func (s *locals) start() {
	s.spare.New = func() any { return new(local) }
	s.slots = make([]slot, max(runtime.NumCPU(), runtime.GOMAXPROCS(0)))
}

//go:linkname procPin runtime.procPin
func procPin() int

//go:linkname procUnpin runtime.procUnpin
func procUnpin()

// pinned is what a goroutine that is pinned to its processor may use.
type pinned struct {
	local *local // may be nil
	slot  *slot  // nil on processors that were added later
}

// pin keeps the goroutine on its processor until unpin or take is called. Code between the two
// must not wait.
func (s *locals) pin() pinned {
	p := procPin()
	if p >= len(s.slots) {
		return pinned{}
	}
	here := &s.slots[p]
	acquire(here)
	return pinned{here.local, here}
}

func (s *locals) unpin(here pinned) {
	if here.slot != nil {
		release(here.slot)
	}
	procUnpin()
}

// take unpins the goroutine and removes the local from the processor. If there is none, it returns
// another that is not in use.
func (s *locals) take(here pinned) *local {
	if here.slot != nil {
		here.slot.local, here.slot.away = nil, here.local
	}
	s.unpin(here)
	if here.local == nil {
		return s.spare.Get().(*local)
	}
	return here.local
}

// put makes l this processor's local, unless the processor has one again. The rest of l's run is
// given up if another local may have taken a later one here in the meantime.
func (s *locals) put(l *local) {
	here := s.pin()
	slot := here.slot
	if slot == nil || slot.away != l {
		l.run.last = l.run.word
	}
	if slot != nil {
		slot.away = nil
		if slot.local == nil {
			slot.local, l = l, nil
		}
	}
	s.unpin(here)
	if l != nil {
		s.spare.Put(l)
	}
}
