package driver

import (
	"cmp"
	"fmt"
	"math"

	"github.com/traceflake/traceflake/lease"
)

// Fit returns the range for a store with blocks of the given size. Zero fields
// of r take the store's values: every node, blocks of that size. Errors:
// [lease.ErrBlockSize] if r has another block size, and those of
// [NodeRange.Check].
func (r NodeRange) Fit(blockSize uint32) (NodeRange, error) {
	if r.BlockSize != 0 && r.BlockSize != blockSize {
		return r, fmt.Errorf("%w: %d nodes, not %d", lease.ErrBlockSize, blockSize, r.BlockSize)
	}
	if r.BlockSize = blockSize; r.Nodes == 0 {
		r.First, r.Nodes = 0, AllNodes.Nodes
	}
	return r, r.Check()
}

// FitNew returns the range for a store that does not exist yet: if r has no
// block size it is DefaultBlockSize. Errors: those of [NodeRange.Check].
func (r NodeRange) FitNew() (NodeRange, error) {
	return r.Fit(cmp.Or(r.BlockSize, DefaultBlockSize))
}

// CheckAsked is [NodeRange.Check] for a range whose zero fields the store will
// fill in.
func (r NodeRange) CheckAsked() error {
	_, err := r.Fit(cmp.Or(r.BlockSize, 1))
	return err
}

// Count returns n as a number of nodes, or as the number of a node. If n is
// neither, it returns a number that [NodeRange.Check] refuses.
func Count(n, least int) uint32 {
	if n < least || int64(n) > math.MaxUint32 {
		return math.MaxUint32
	}
	return uint32(n)
}
