package lease

import (
	"fmt"
	"time"

	"github.com/traceflake/traceflake/randflake"
)

// Block is what a store keeps for a block of nodes. Its methods are the rule
// of granting, in one place: they return the block's next state, with the
// version raised by one, or say why there is none. A store reads a block,
// applies one of them and writes the result, in one atomic step.
//
// Times are whole seconds.
type Block struct {
	Node, Nodes uint32
	// Start is the start of the last grant, the zero Time before the first.
	Start time.Time
	// GrantedUntil is the first second never granted, the zero Time before the
	// first grant. It only grows, but for Release.
	GrantedUntil time.Time
	// Holder is who may renew, or "".
	Holder string
	// Version is raised by every write; a block never written has version 0.
	Version uint64
}

// Grant returns the block as the grant that it last was.
func (b Block) Grant() Grant {
	return Grant{
		Lease:   randflake.Lease{Node: b.Node, Nodes: b.Nodes, Start: b.Start, End: b.GrantedUntil},
		Holder:  b.Holder,
		Version: b.Version,
	}
}

// Free tells whether the block may be granted at now, cut to a whole second:
// when GrantedUntil is not after it.
func (b Block) Free(now time.Time) bool {
	return b.GrantedUntil.Unix() <= now.Unix()
}

// Acquire grants the block for [now, now+TTL). The request must have passed
// [Request.Check]. Errors: [ErrNoFreeNode] when the block is not free.
//
// Asking whether some block has the holder already is up to the store.
func (b Block) Acquire(r Request) (Block, error) {
	if !b.Free(r.Now) {
		return b, fmt.Errorf("%w: node %d is granted until %s", ErrNoFreeNode, b.Node, text(b.GrantedUntil))
	}
	b.Start = second(r.Now)
	b.GrantedUntil = capEnd(b.Start.Add(r.TTL))
	b.Holder = r.Holder
	b.Version++
	return b, nil
}

// Renew moves the block's end to end, cut to a whole second and to the end of
// life. An end that is not later than GrantedUntil gives the block unchanged,
// with its old version: nothing is to be written. Errors: [ErrLost].
func (b Block) Renew(g Grant, end time.Time) (Block, error) {
	if err := b.held(g); err != nil {
		return b, err
	}
	if end = capEnd(end); end.After(b.GrantedUntil) {
		b.GrantedUntil = end
		b.Version++
	}
	return b, nil
}

// Release takes back the seconds from unused on, rounded up to a whole second,
// and frees the holder. Of the seconds from Start to GrantedUntil it never
// takes back more than there are. Errors: [ErrLost].
func (b Block) Release(g Grant, unused time.Time) (Block, error) {
	if err := b.held(g); err != nil {
		return b, err
	}
	unused = roundUp(unused)
	if unused.Before(b.Start) {
		unused = b.Start
	}
	if unused.Before(b.GrantedUntil) {
		b.GrantedUntil = unused
	}
	b.Holder = ""
	b.Version++
	return b, nil
}

// Raise moves GrantedUntil to until, rounded up to a whole second, unless it
// is later, and frees the holder.
func (b Block) Raise(until time.Time) Block {
	if until = roundUp(until); until.After(b.GrantedUntil) {
		b.GrantedUntil = until
	}
	b.Holder = ""
	b.Version++
	return b
}

func (b Block) held(g Grant) error {
	switch {
	case b.Node != g.Node || b.Nodes != g.Nodes:
		return fmt.Errorf("%w: nodes %d+%d are not the block %d+%d", ErrInvalidRequest, g.Node, g.Nodes, b.Node, b.Nodes)
	case g.Holder == "":
		return fmt.Errorf("%w: the grant has no holder", ErrInvalidRequest)
	case b.Holder != g.Holder:
		return fmt.Errorf("%w: node %d has another holder, or none", ErrLost, b.Node)
	case b.Version != g.Version:
		return fmt.Errorf("%w: node %d has version %d, not %d", ErrLost, b.Node, b.Version, g.Version)
	}
	return nil
}

// NodeRange says which nodes a store grants, and in blocks of how many.
type NodeRange struct {
	First, Nodes uint32 // nodes [First, First+Nodes)
	BlockSize    uint32 // nodes a block
}

// DefaultBlockSize is how many nodes a block has unless a store is told
// otherwise.
const DefaultBlockSize = 8

// AllNodes is every node in blocks of the default size.
var AllNodes = NodeRange{First: 0, Nodes: randflake.MaxNode + 1, BlockSize: DefaultBlockSize}

// Check says what is wrong with the range: the block size must be a power of
// two up to 131072, and First and Nodes multiples of it. The error is an
// [ErrInvalidRequest].
func (r NodeRange) Check() error {
	const nodes = randflake.MaxNode + 1
	switch {
	case r.BlockSize == 0 || r.BlockSize&(r.BlockSize-1) != 0 || r.BlockSize > nodes:
		return fmt.Errorf("%w: block size %d, want a power of two from 1 to %d", ErrInvalidRequest, r.BlockSize, nodes)
	case r.Nodes == 0 || r.First >= nodes || r.Nodes > nodes-r.First:
		return fmt.Errorf("%w: nodes %d+%d, want at least one, all of them below %d", ErrInvalidRequest, r.First, r.Nodes, nodes)
	case r.First%r.BlockSize != 0 || r.Nodes%r.BlockSize != 0:
		return fmt.Errorf("%w: nodes %d+%d, want multiples of the block size, %d", ErrInvalidRequest, r.First, r.Nodes, r.BlockSize)
	}
	return nil
}

// Blocks is the number of blocks in the range.
func (r NodeRange) Blocks() int { return int(r.Nodes / r.BlockSize) }

// Block returns block i of the range, from 0 to Blocks()-1, as one that was
// never granted.
func (r NodeRange) Block(i int) Block {
	return Block{Node: r.First + uint32(i)*r.BlockSize, Nodes: r.BlockSize}
}

// Index returns which block of the range starts at node. The error is an
// [ErrInvalidRequest].
func (r NodeRange) Index(node uint32) (int, error) {
	if node < r.First || node-r.First >= r.Nodes || (node-r.First)%r.BlockSize != 0 {
		return 0, fmt.Errorf("%w: no block of %d nodes from %d to %d starts at node %d",
			ErrInvalidRequest, r.BlockSize, r.First, r.First+r.Nodes-1, node)
	}
	return int((node - r.First) / r.BlockSize), nil
}

// second cuts t to a whole second.
func second(t time.Time) time.Time { return time.Unix(t.Unix(), 0).UTC() }

func roundUp(t time.Time) time.Time {
	if t.Nanosecond() > 0 {
		return second(t).Add(time.Second)
	}
	return second(t)
}

// capEnd cuts an end to a whole second, and to the end of life.
func capEnd(end time.Time) time.Time {
	return time.Unix(min(end.Unix(), randflake.EndOfLife), 0).UTC()
}

func text(t time.Time) string { return t.UTC().Format(time.RFC3339) }
