//go:build !race && !nolinkname

package idgen

import (
	"runtime"
	_ "unsafe" // for linkname

	"github.com/traceflake/traceflake/randflake"
)

// shards keeps one batch for each processor (a P of Go's scheduler), so that no
// two of them write the same cache line.
//
// A sync.Pool does this, too, and is what the builds with the tags nolinkname and
// race use; see pool.go. It pins the goroutine to its processor twice
// for each ID, once to get and once to put. Pinning it once, around the few
// instructions that take an ID, makes a span ID cost half as much: the command
// is `go test -bench NewSpanID ./idgen`, without and with -tags nolinkname.
// runtime.procPin is not part of Go's public interface, but on the runtime's
// list of names whose removal or change would break too many (go.dev/issue/67401).
type shards struct {
	slots  []slot // by processor
	over   pooled // of processors beyond those there were at first
	counts *counts
}

type slot struct {
	batch *batch
	spare *batch    // to be filled next; what it gave is counted
	_     [112]byte // two cache lines, which processors fetch in pairs
}

func newShards(c *counts) *shards {
	return &shards{
		slots:  make([]slot, max(runtime.NumCPU(), runtime.GOMAXPROCS(0))),
		over:   pooled{counts: c},
		counts: c,
	}
}

//go:linkname procPin runtime.procPin
func procPin() int

//go:linkname procUnpin runtime.procUnpin
func procUnpin()

// take takes n IDs from this processor's batch; see batch.take.
func (s *shards) take(n, traces int, now int64, generation uint64) (first, last randflake.ID, ok bool) {
	p := procPin()
	if p >= len(s.slots) {
		procUnpin()
		return s.over.take(n, traces, now, generation)
	}
	// Between the two the goroutine cannot be stopped: no calls, no loops.
	if b := s.slots[p].batch; b != nil {
		first, last, ok = b.take(n, traces, now, generation)
	}
	procUnpin()
	return first, last, ok
}

// spare returns a batch to be filled, and used for one ID at least.
func (s *shards) spare() *batch {
	p := procPin()
	if p >= len(s.slots) {
		procUnpin()
		return s.over.spare()
	}
	b := s.slots[p].spare
	s.slots[p].spare = nil
	procUnpin()
	if b == nil {
		b = new(batch)
	}
	return b
}

// put makes b this processor's batch, and the one that it had its spare.
func (s *shards) put(b *batch) {
	p := procPin()
	if p >= len(s.slots) {
		procUnpin()
		s.over.put(b)
		return
	}
	slot := &s.slots[p]
	if slot.batch != nil {
		s.counts.used(slot.batch)
		slot.spare = slot.batch
	}
	slot.batch = b
	procUnpin()
}
