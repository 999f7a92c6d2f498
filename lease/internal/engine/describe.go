package engine

import (
	"cmp"
	"math/bits"
	"strings"
	"time"

	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/randflake"
)

// allNodes is how many nodes there are.
const allNodes = randflake.MaxNode + 1

// idLen is the length of a store's ID.
const idLen = nonceLen

// NewDescription returns d with defaults for what it lacks: a new ID, every node, blocks of eight
// nodes and [lease.DefaultTTL]. It truncates Created to a whole second. The error
// wraps [lease.ErrInvalidRequest].
func NewDescription(d lease.Description) (lease.Description, error) {
	d.ID = cmp.Or(d.ID, lease.NewNonce())
	d.BlockSize = cmp.Or(d.BlockSize, 8)
	if d.First == 0 {
		d.Nodes = cmp.Or(d.Nodes, allNodes)
	}
	d.LongestTTL = cmp.Or(d.LongestTTL, lease.DefaultTTL)
	d.Created = d.Created.UTC().Truncate(time.Second)
	return d, checkDescription(d)
}

// checkDescription returns an error if no store can be created with d. The error wraps
// [lease.ErrInvalidRequest].
func checkDescription(d lease.Description) error {
	if d.LongestTTL < lease.MinTTL || d.LongestTTL > lease.MaxTTL ||
		d.LongestTTL%time.Second != 0 {
		return invalid("longest TTL %s, want whole seconds from %s to %s", d.LongestTTL,
			lease.MinTTL, lease.MaxTTL)
	}
	err := cmp.Or(checkHex("ID", d.ID, idLen), checkNodes(d))
	for _, s := range d.Secrets {
		err = cmp.Or(err, checkFingerprint(s))
	}
	return err
}

// checkNodes returns an error unless the block size is a power of two, and First and Nodes are
// multiples of it.
func checkNodes(d lease.Description) error {
	switch {
	case bits.OnesCount32(d.BlockSize) != 1 || d.BlockSize > allNodes:
		return invalid("block size %d, want a power of two from 1 to %d", d.BlockSize, allNodes)
	case d.Nodes == 0 || d.First >= allNodes || d.Nodes > allNodes-d.First:
		return invalid("nodes %d+%d, want at least one, all of them below %d", d.First,
			d.Nodes, allNodes)
	case d.First%d.BlockSize != 0 || d.Nodes%d.BlockSize != 0:
		return invalid("nodes %d+%d, want multiples of the block size, %d", d.First, d.Nodes,
			d.BlockSize)
	}
	return nil
}

// checkBlock returns an error unless one of the blocks that d describes starts at node.
func checkBlock(d lease.Description, node uint32) error {
	if node < d.First || node-d.First >= d.Nodes || (node-d.First)%d.BlockSize != 0 {
		return invalid("no block of %d nodes from %d to %d starts at node %d", d.BlockSize,
			d.First, d.First+d.Nodes-1, node)
	}
	return nil
}

// checkPages returns an error unless a page may have this number of blocks.
func checkPages(blocks uint32) error {
	if blocks < 1 || blocks > allNodes {
		return invalid("%d blocks on a page, want 1 to %d", blocks, allNodes)
	}
	return nil
}

// checkFingerprint returns an error unless s has the form of a [lease.Description.Fingerprint].
func checkFingerprint(s string) error {
	return checkHex("fingerprint", s, 16)
}

func checkHex(what, text string, digits int) error {
	if len(text) != digits || strings.Trim(text, "0123456789abcdef") != "" {
		return invalid("%s %q, want %d lower-case hex digits", what,
			text, digits)
	}
	return nil
}
