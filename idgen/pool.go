package idgen

import (
	"sync"

	"github.com/traceflake/traceflake/randflake"
)

// pooled keeps batches in a sync.Pool, for the most part one for each processor.
// The pool may forget them, so each ID is counted when it is taken: that is
// dearer than in shards, the more so the more processors there are.
type pooled struct {
	pool   sync.Pool
	counts *counts
}

// take takes n IDs from some batch; see batch.take.
func (s *pooled) take(n, traces int, now int64, generation uint64) (first, last randflake.ID, ok bool) {
	if b, have := s.pool.Get().(*batch); have {
		first, last, ok = b.take(n, traces, now, generation)
		s.put(b)
	}
	return first, last, ok
}

// spare returns a batch to be filled, and used for one ID at least.
func (s *pooled) spare() *batch {
	if b, ok := s.pool.Get().(*batch); ok {
		return b
	}
	return new(batch)
}

// put counts b and keeps it for take.
func (s *pooled) put(b *batch) {
	s.counts.used(b)
	s.pool.Put(b)
}
