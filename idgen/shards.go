//go:build !nolinkname

package idgen

import (
	"runtime"
	_ "unsafe" // for linkname
)

// shards keeps one stock for each processor (a P of Go's scheduler).
//
// A sync.Pool does this too, and the build tag nolinkname selects it. It pins the goroutine to its
// processor twice for each ID, once for Get and once for Put; bench/RESULTS.md has the gain from
// pinning it once. runtime.procPin is not part of Go's public interface, but it is on the
// runtime's list of names whose removal or change would break too many packages
// (go.dev/issue/67401).
type shards struct {
	slots  []slot // by processor
	pooled        // stocks without a slot
}

type slot struct {
	stock *stock
	away  *stock    // was taken from here, and no other has been used here since
	_     [112]byte // two cache lines, which processors fetch in pairs
}

func newShards(c *counts) *shards {
	return &shards{make([]slot, max(runtime.NumCPU(), runtime.GOMAXPROCS(0))), pooled{counts: c}}
}

//go:linkname procPin runtime.procPin
func procPin() int

//go:linkname procUnpin runtime.procUnpin
func procUnpin()

// pin returns this processor's stock, which may be nil, and keeps the goroutine on the processor
// until unpin is called with the returned number. Code between the two must not wait. Processors
// added later have no stock.
func (s *shards) pin() (*stock, int) {
	p := procPin()
	if p >= len(s.slots) {
		return nil, p
	}
	acquire(&s.slots[p])
	return s.slots[p].stock, p
}

func (s *shards) unpin(_ *stock, p int) {
	if p < len(s.slots) {
		release(&s.slots[p])
	}
	procUnpin()
}

// take ends the pinning that pin began and removes the stock k from the processor. If k is nil, it
// returns another stock that is not in use.
func (s *shards) take(k *stock, p int) *stock {
	if p < len(s.slots) {
		s.slots[p].stock, s.slots[p].away = nil, k
	}
	s.unpin(k, p)
	if k == nil {
		k = s.pooled.take()
	}
	return k
}

// put makes k this processor's stock, unless the processor has a stock again. The rest of its run
// is abandoned if another stock may have taken a later one here in the meantime.
func (s *shards) put(k *stock) {
	other, p := s.pin()
	if p >= len(s.slots) || s.slots[p].away != k {
		k.last = k.word
	}
	if p < len(s.slots) {
		s.slots[p].away = nil
		if other == nil {
			s.slots[p].stock, k = k, nil
		}
	}
	s.unpin(other, p)
	if k != nil {
		s.pooled.put(k)
	}
}
