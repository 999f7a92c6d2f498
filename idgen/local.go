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
	s.slots = make([]slot, max(runtime.NumCPU(), runtime.GOMAXPROCS(0)))
}

//go:linkname procPin runtime.procPin
func procPin() int

//go:linkname procUnpin runtime.procUnpin
func procUnpin()

// pin returns this processor's local, which may be nil, and keeps the goroutine on the processor
// until unpin is called with the returned number. Code between the two must not wait. Processors
// added later have no local.
func (s *locals) pin() (*local, int) {
	p := procPin()
	if p >= len(s.slots) {
		return nil, p
	}
	acquire(&s.slots[p])
	return s.slots[p].local, p
}

func (s *locals) unpin(_ *local, p int) {
	if p < len(s.slots) {
		release(&s.slots[p])
	}
	procUnpin()
}

// take ends the pinning that pin began and removes the local l from the processor. If l is nil, it
// returns another local that is not in use.
func (s *locals) take(l *local, p int) *local {
	if p < len(s.slots) {
		s.slots[p].local, s.slots[p].away = nil, l
	}
	s.unpin(l, p)
	if l == nil {
		l = spareOf(&s.spare)
	}
	return l
}

// put makes l this processor's local, unless the processor has a local again. The rest of its run
// is abandoned if another local may have taken a later one here in the meantime.
func (s *locals) put(l *local) {
	other, p := s.pin()
	if p >= len(s.slots) || s.slots[p].away != l {
		l.run.last = l.run.word // gives up what is left
	}
	if p < len(s.slots) {
		s.slots[p].away = nil
		if other == nil {
			s.slots[p].local, l = l, nil
		}
	}
	s.unpin(other, p)
	if l != nil {
		s.spare.Put(l)
	}
}
