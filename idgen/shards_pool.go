package idgen

import "sync"

// pooled keeps stocks, usually one for each processor. The pool may drop them,
// so they are counted when they are put back.
type pooled struct {
	pool   sync.Pool
	counts *counts
}

func (s *pooled) take() *stock {
	if k, ok := s.pool.Get().(*stock); ok {
		return k
	}
	return new(stock)
}

func (s *pooled) put(k *stock) {
	s.counts.used(k)
	s.pool.Put(k)
}
