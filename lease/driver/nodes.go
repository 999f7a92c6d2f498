package driver

import (
	"fmt"

	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/randflake"
)

// NodeRange is the range of nodes that a store grants, and the size of its blocks.
type NodeRange struct {
	First, Nodes uint32 // nodes [First, First+Nodes)
	BlockSize    uint32 // nodes a block
}

// DefaultBlockSize is the number of nodes in a block unless a store is created with another size.
const DefaultBlockSize = 8

// AllNodes is every node in blocks of the default size.
var AllNodes = NodeRange{First: 0, Nodes: randflake.MaxNode + 1, BlockSize: DefaultBlockSize}

// RangeOf returns the nodes of a store.
func RangeOf(d lease.Description) NodeRange {
	return NodeRange{First: d.First, Nodes: d.Nodes, BlockSize: d.BlockSize}
}

// Check returns an error if the range is invalid: the block size must be a
// power of two up to 131072, and First and Nodes multiples of it. The error
// wraps [lease.ErrInvalidRequest].
func (r NodeRange) Check() error {
	const nodes = randflake.MaxNode + 1
	switch {
	case r.BlockSize == 0 || r.BlockSize&(r.BlockSize-1) != 0 || r.BlockSize > nodes:
		return fmt.Errorf("%w: block size %d, want a power of two from 1 to %d",
			lease.ErrInvalidRequest, r.BlockSize, nodes)
	case r.Nodes == 0 || r.First >= nodes || r.Nodes > nodes-r.First:
		return fmt.Errorf("%w: nodes %d+%d, want at least one, all of them below %d",
			lease.ErrInvalidRequest, r.First, r.Nodes, nodes)
	case r.First%r.BlockSize != 0 || r.Nodes%r.BlockSize != 0:
		return fmt.Errorf("%w: nodes %d+%d, want multiples of the block size, %d",
			lease.ErrInvalidRequest, r.First, r.Nodes, r.BlockSize)
	}
	return nil
}

// Blocks returns the number of blocks in the range.
func (r NodeRange) Blocks() int { return int(r.Nodes / max(r.BlockSize, 1)) }

// Block returns block i of the range, from 0 to Blocks()-1, never granted.
func (r NodeRange) Block(i int) lease.Grant {
	first := r.First + uint32(i)*r.BlockSize
	return lease.Grant{Lease: randflake.Lease{Node: first, Nodes: r.BlockSize}}
}

// Index returns the number of the block that starts at node. The error wraps
// [lease.ErrInvalidRequest].
func (r NodeRange) Index(node uint32) (int, error) {
	if node < r.First || node-r.First >= r.Nodes || (node-r.First)%r.BlockSize != 0 {
		return 0, fmt.Errorf("%w: no block of %d nodes from %d to %d starts at node %d",
			lease.ErrInvalidRequest, r.BlockSize, r.First, r.First+r.Nodes-1, node)
	}
	return int((node - r.First) / r.BlockSize), nil
}
