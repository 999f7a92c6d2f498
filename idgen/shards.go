//go:build !race && !purego

package idgen

import (
	"runtime"
	"sync"
	_ "unsafe" // for linkname

	"github.com/traceflake/traceflake/randflake"
)

// shards keeps one batch for each processor (a P of Go's scheduler), so that no
// two of them write the same cache line.
//
// A sync.Pool does this, too, and is what the builds with the tags purego and
// race use; see shards_pool.go. It pins the goroutine to its processor twice
// for each ID, once to get and once to put. Pinning it once, around the few
// instructions that take an ID, makes a span ID cost half as much: the command
// is `go test -bench NewSpanID ./idgen`, without and with -tags purego.
// runtime.procPin is not part of Go's public interface, but on the runtime's
// list of names whose removal or change would break too many (go.dev/issue/67401).
type shards struct {
	slots  []slot // by processor
	spares sync.Pool
}

type slot struct {
	batch *batch
	_     [120]byte // two cache lines, which processors fetch in pairs
}

func newShards() *shards {
	return &shards{slots: make([]slot, max(runtime.NumCPU(), runtime.GOMAXPROCS(0)))}
}

//go:linkname procPin runtime.procPin
func procPin() int

//go:linkname procUnpin runtime.procUnpin
func procUnpin()

// take takes n IDs from this processor's batch; see batch.take.
func (s *shards) take(n, traces int, now int64, generation uint64) (first, last randflake.ID, ok bool) {
	// Between the two the goroutine cannot be stopped: no calls, no loops.
	if p := procPin(); p < len(s.slots) {
		if b := s.slots[p].batch; b != nil {
			first, last, ok = b.take(n, traces, now, generation)
		}
	}
	procUnpin()
	return first, last, ok
}

// spare returns a batch to be filled, and used for one ID at least.
func (s *shards) spare() *batch {
	if b, ok := s.spares.Get().(*batch); ok {
		return b
	}
	return new(batch)
}

// put makes b this processor's batch, and the one that it had a spare. A
// processor beyond those there were at first has none: its batch is a spare
// at once, and every ID of its goroutines comes the long way.
func (s *shards) put(b *batch) {
	if p := procPin(); p < len(s.slots) {
		s.slots[p].batch, b = b, s.slots[p].batch
	}
	procUnpin()
	if b != nil {
		s.spares.Put(b)
	}
}
