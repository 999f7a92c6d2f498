//go:build nolinkname

package idgen

import "sync"

// shards keeps one stock for each processor, for the most part; see shards.go,
// whose portable twin this is. The pool may forget stocks, so each is counted
// when it is put back.
type shards struct {
	pool   sync.Pool
	counts *counts
}

func newShards(c *counts) *shards { return &shards{counts: c} }

func (s *shards) pin() (*stock, int) {
	k, _ := s.pool.Get().(*stock)
	return k, 0
}

func (s *shards) unpin(k *stock, _ int) {
	if k != nil {
		s.put(k)
	}
}

func (s *shards) take() *stock {
	if k, ok := s.pool.Get().(*stock); ok {
		return k
	}
	return new(stock)
}

func (s *shards) put(k *stock) {
	s.counts.used(k)
	s.pool.Put(k)
}
