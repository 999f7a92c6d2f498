package engine

import (
	"fmt"
	"math/bits"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/driver"
	"github.com/traceflake/traceflake/randflake"
)

const (
	// clockBound is how far a client's clock may be ahead of the store's, and how far it may be
	// behind without being reported.
	clockBound = time.Minute

	nonceLen = 32
	idLen    = 32

	// allNodes is how many nodes there are.
	allNodes = randflake.MaxNode + 1
)

// checkRequest returns an error for an Acquire or a Renew that no store may grant. Errors:
// [lease.ErrInvalidRequest], [randflake.ErrBeforeEpoch], [randflake.ErrEndOfLife].
func checkRequest(r lease.Request) error {
	switch {
	case len(r.Nonce) != nonceLen || strings.Trim(r.Nonce, "0123456789abcdef") != "":
		return driver.Invalid("nonce %q, want %d lower-case hex digits", r.Nonce, nonceLen)
	case len(r.Owner) > lease.MaxOwner || !utf8.ValidString(r.Owner) ||
		strings.ContainsFunc(r.Owner, func(r rune) bool { return !unicode.IsPrint(r) }):
		return driver.Invalid("owner %q, want at most %d bytes of printable UTF-8", r.Owner,
			lease.MaxOwner) // which every store and terminal can handle
	case r.TTL < lease.MinTTL || r.TTL > lease.MaxTTL:
		return driver.Invalid("TTL %s, want %s to %s", r.TTL, lease.MinTTL, lease.MaxTTL)
	case r.Now.Unix() < randflake.Epoch:
		return fmt.Errorf("lease: the client's clock: %w", randflake.ErrBeforeEpoch)
	case r.Now.Unix() >= randflake.EndOfLife:
		return fmt.Errorf("lease: the client's clock: %w", randflake.ErrEndOfLife)
	}
	return nil
}

// checkClock compares the client's clock with the store's, which sends whole seconds, or the zero
// Time if it has no clock. It returns [lease.ErrClockAhead] if the client's is too far ahead, and
// the [lease.Grant.Behind] of what is granted.
func checkClock(client, store time.Time) (behind time.Duration, err error) {
	switch behind = store.Sub(client); {
	case store.IsZero():
		return 0, nil
	case -behind > clockBound+time.Second: // the last second may be nearly over
		return 0, fmt.Errorf("%w by %s", lease.ErrClockAhead, (-behind).Round(time.Second))
	case behind > clockBound:
		return behind.Round(time.Second), nil
	}
	return 0, nil
}

// checkDescription returns an error if no store can be created with d: its block size is a power of
// two, and First and Nodes are multiples of it. The error wraps [lease.ErrInvalidRequest].
func checkDescription(d lease.Description) error {
	switch {
	case d.LongestTTL < lease.MinTTL || d.LongestTTL > lease.MaxTTL ||
		d.LongestTTL%time.Second != 0:
		return driver.Invalid("longest TTL %s, want whole seconds from %s to %s", d.LongestTTL,
			lease.MinTTL, lease.MaxTTL)
	case bits.OnesCount32(d.BlockSize) != 1 || d.BlockSize > allNodes:
		return driver.Invalid("block size %d, want a power of two from 1 to %d", d.BlockSize,
			allNodes)
	case d.Nodes == 0 || d.First >= allNodes || d.Nodes > allNodes-d.First:
		return driver.Invalid("nodes %d+%d, want at least one, all of them below %d", d.First,
			d.Nodes, allNodes)
	case d.First%d.BlockSize != 0 || d.Nodes%d.BlockSize != 0:
		return driver.Invalid("nodes %d+%d, want multiples of the block size, %d", d.First,
			d.Nodes, d.BlockSize)
	}
	return nil
}

// checkBlock returns an error unless one of the blocks that d describes starts at node.
func checkBlock(d lease.Description, node uint32) error {
	if node < d.First || node-d.First >= d.Nodes || (node-d.First)%d.BlockSize != 0 {
		return driver.Invalid("no block of %d nodes from %d to %d starts at node %d", d.BlockSize,
			d.First, d.First+d.Nodes-1, node)
	}
	return nil
}

// checkPages returns an error unless a page may have this number of blocks.
func checkPages(blocks uint32) error {
	if blocks < 1 || blocks > allNodes {
		return driver.Invalid("%d blocks on a page, want 1 to %d", blocks, allNodes)
	}
	return nil
}
