package randflake

import (
	"errors"
	"fmt"
	"time"
)

var errInvalidLease = errors.New("randflake: invalid lease")

// Lease gives one generator exclusive use of the nodes [Node, Node+Nodes) in the seconds [Start,
// End). It is for one generator in one process, once: never save, copy or reuse it.
//
// Nodes is a power of two up to 131072 and Node a multiple of it. Start and End lie within [Epoch,
// EndOfLife]; a Start within a second is rounded up to the next whole second, an End is rounded
// down.
type Lease struct {
	Node, Nodes uint32
	Start, End  time.Time
}

// seconds returns the lease's rectangle in seconds since the epoch, rounded inwards, or an error
// if the lease is invalid.
func (l Lease) seconds() (start, end uint64, err error) {
	if l.Nodes&(l.Nodes-1) != 0 || l.Nodes-1 > MaxNode || l.Node > MaxNode || l.Node%l.Nodes != 0 {
		return 0, 0, fmt.Errorf("%w: %d nodes from node %d: "+
			"want a power of two that begins at a multiple of itself and ends by node %d",
			errInvalidLease, l.Nodes, l.Node, MaxNode)
	}
	if start, err = secondOf(l.Start); err != nil {
		return 0, 0, fmt.Errorf("%w: start: %w", errInvalidLease, err)
	}
	if l.Start.Nanosecond() > 0 {
		start++
	}
	if end, err = endSecond(l.End); err != nil {
		return 0, 0, fmt.Errorf("%w: end: %w", errInvalidLease, err)
	}
	if start >= end {
		return 0, 0, fmt.Errorf("%w: no whole second from %s to %s", errInvalidLease,
			l.Start.UTC().Format(time.RFC3339Nano), l.End.UTC().Format(time.RFC3339Nano))
	}
	return start, end, nil
}

// endSecond is secondOf for the end of a lease, which is exclusive and may be EndOfLife.
func endSecond(t time.Time) (uint64, error) {
	last, err := secondOf(t.Add(-time.Second))
	return last + 1, err
}
