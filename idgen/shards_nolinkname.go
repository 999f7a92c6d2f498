//go:build nolinkname

package idgen

// shards is the portable twin of the type in shards.go.
type shards struct{ pooled }

func newShards(c *counts) *shards { return &shards{pooled{counts: c}} }

func (s *shards) pin() (*stock, int)          { return s.pooled.take(), 0 }
func (s *shards) unpin(k *stock, _ int)       { s.put(k) }
func (s *shards) take(k *stock, _ int) *stock { return k }
