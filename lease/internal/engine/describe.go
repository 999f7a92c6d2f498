package engine

import (
	"cmp"
	"fmt"
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
	if err := checkHex("ID", d.ID, idLen); err != nil {
		return err
	}
	for _, s := range d.Secrets {
		if err := checkFingerprint(s); err != nil {
			return err
		}
	}
	if d.LongestTTL < lease.MinTTL || d.LongestTTL > lease.MaxTTL ||
		d.LongestTTL%time.Second != 0 {
		return fmt.Errorf("%w: longest TTL %s, want whole seconds from %s to %s",
			lease.ErrInvalidRequest, d.LongestTTL, lease.MinTTL, lease.MaxTTL)
	}
	return checkNodes(d)
}

// checkNodes returns an error unless the block size is a power of two, and First and Nodes are
// multiples of it.
func checkNodes(d lease.Description) error {
	switch {
	case d.BlockSize == 0 || d.BlockSize&(d.BlockSize-1) != 0 || d.BlockSize > allNodes:
		return fmt.Errorf("%w: block size %d, want a power of two from 1 to %d",
			lease.ErrInvalidRequest, d.BlockSize, allNodes)
	case d.Nodes == 0 || d.First >= allNodes || d.Nodes > allNodes-d.First:
		return fmt.Errorf("%w: nodes %d+%d, want at least one, all of them below %d",
			lease.ErrInvalidRequest, d.First, d.Nodes, allNodes)
	case d.First%d.BlockSize != 0 || d.Nodes%d.BlockSize != 0:
		return fmt.Errorf("%w: nodes %d+%d, want multiples of the block size, %d",
			lease.ErrInvalidRequest, d.First, d.Nodes, d.BlockSize)
	}
	return nil
}

// checkBlock returns an error unless one of the blocks that d describes starts at node.
func checkBlock(d lease.Description, node uint32) error {
	if node < d.First || node-d.First >= d.Nodes || (node-d.First)%d.BlockSize != 0 {
		return fmt.Errorf("%w: no block of %d nodes from %d to %d starts at node %d",
			lease.ErrInvalidRequest, d.BlockSize, d.First, d.First+d.Nodes-1, node)
	}
	return nil
}

// checkFingerprint returns an error unless s has the form of a [lease.Description.Fingerprint].
func checkFingerprint(s string) error {
	return checkHex("fingerprint", s, 16)
}

func checkHex(what, text string, digits int) error {
	if len(text) != digits || strings.Trim(text, "0123456789abcdef") != "" {
		return fmt.Errorf("%w: %s %q, want %d lower-case hex digits", lease.ErrInvalidRequest, what,
			text, digits)
	}
	return nil
}

// shorten returns r with a TTL of at most the store's longest.
func shorten(r lease.Request, d lease.Description) lease.Request {
	r.TTL = min(r.TTL, d.LongestTTL)
	return r
}
