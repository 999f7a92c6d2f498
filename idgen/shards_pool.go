//go:build race || purego

package idgen

import (
	"sync"

	"github.com/traceflake/traceflake/randflake"
)

// shards keeps one batch for each processor; see shards.go. This is the
// portable twin.
type shards struct{ pool sync.Pool }

func newShards() *shards { return new(shards) }

func (s *shards) take(n, traces int, now int64, generation uint64) (first, last randflake.ID, ok bool) {
	if b, have := s.pool.Get().(*batch); have {
		first, last, ok = b.take(n, traces, now, generation)
		s.pool.Put(b)
	}
	return first, last, ok
}

func (s *shards) spare() *batch {
	if b, ok := s.pool.Get().(*batch); ok {
		return b
	}
	return new(batch)
}

func (s *shards) put(b *batch) { s.pool.Put(b) }
