//go:build race || nolinkname

package idgen

// shards keeps one batch for each processor, for the most part; see shards.go.
// This is the portable twin.
type shards struct{ pooled }

func newShards(c *counts) *shards { return &shards{pooled{counts: c}} }
