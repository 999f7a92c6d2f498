package driver

import (
	"context"
	"fmt"
	"time"

	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/randflake"
)

// closed is the end of a block that a [Move] took from a store: nothing is
// granted there any more.
var closed = time.Unix(randflake.EndOfLife, 0).UTC()

// Closed reports whether nothing of the block is granted any more, because its
// nodes were moved to another store.
func (b Block) Closed() bool { return !b.GrantedUntil.Before(closed) }

const (
	// quiet is how long after the last grant's end nothing is granted during a Move.
	quiet = 2 * time.Minute
	// longest is what one write can add to a block's end: a client renews a lease
	// before its end, apart from some seconds in which it waits for its store.
	longest = lease.MaxTTL + time.Minute
)

// Move moves nodes to another store, for good: from grants and renews none of
// them any more, and to grants none of their seconds before the time that Move
// returns, which is after the end of every grant of from. Holders use their
// leases of from to the end. The result depends on no clock.
//
// The stores must be opened with the same nodes; their block sizes may differ.
// If Move fails, call it again with the same stores. (If it failed after it began to
// close from, the second Move does not see what a client acquired during the first.
// That takes a from without a clock, or a first Move of more than a minute; and a
// client whose clock is ahead, or no lease of from that is not over.)
func Move(ctx context.Context, from, to lease.Admin) (time.Time, error) {
	// Nobody can renew after the first raise. It also keeps clients with correct
	// clocks from acquiring blocks until the second, unless from has no clock and
	// all of its leases are over.
	now, err := from.Time(ctx)
	if err != nil {
		return now, err
	}
	blocks, err := from.List(ctx)
	if err != nil {
		return now, err
	}
	low := time.Unix(randflake.Epoch, 0)
	for _, end := range []time.Time{now, latest(blocks)} {
		if low.Before(end) {
			low = end
		}
	}
	if err := from.Raise(ctx, low.Add(quiet)); err != nil {
		return now, err
	}
	before, err := from.List(ctx)
	if err != nil {
		return now, err
	}
	end := latest(before)
	if end.Before(low.Add(quiet)) { // all were closed by a Move that failed at last
		end = low.Add(quiet)
	}

	// The new store is raised before the old one forgets its ends.
	written, err := to.List(ctx)
	if err != nil {
		return end, err
	}
	if err := movable(before, written); err != nil {
		return end, err
	}
	if err := to.Raise(ctx, end); err != nil {
		return end, err
	}
	if written, err = to.List(ctx); err != nil {
		return end, err
	}
	if a, b := nodesOf(before), nodesOf(written); a != b {
		return end, fmt.Errorf("%w: the stores do not have the same nodes: %d+%d and %d+%d",
			lease.ErrInvalidRequest, a.First, a.Nodes, b.First, b.Nodes)
	}
	end = earliest(written)
	if again, err := from.List(ctx); err != nil {
		return end, err
	} else if rewritten(before, again) {
		return end, fmt.Errorf("%w: both are the same store", lease.ErrInvalidRequest)
	}
	if err := from.Raise(ctx, closed); err != nil {
		return end, err
	}

	// A client whose clock is ahead may have acquired a block in between, or renewed
	// one that it acquired after the first raise. The ends are lost, but the last
	// grant's start is known, and how often the block was written.
	after, err := from.List(ctx)
	if err != nil {
		return end, err
	}
	missed := end
	for i, b := range after {
		if i >= len(before) || b.Version <= before[i].Version+1 {
			continue // nobody wrote it but this Move
		}
		until := b.Start
		if until.Before(before[i].GrantedUntil) {
			until = before[i].GrantedUntil
		}
		writes := b.Version - before[i].Version - 1
		if until = until.Add(time.Duration(writes) * longest); until.After(missed) {
			missed = until
		}
	}
	if missed.After(end) {
		return missed, to.Raise(ctx, missed)
	}
	return end, nil
}

// latest returns the latest end of a grant, apart from closed blocks.
func latest(blocks []lease.Block) (end time.Time) {
	for _, b := range blocks {
		if b.GrantedUntil.After(end) && !Block(b).Closed() {
			end = b.GrantedUntil
		}
	}
	return end
}

// earliest returns from when on a block is free.
func earliest(blocks []lease.Block) time.Time {
	end := closed
	for _, b := range blocks {
		if b.GrantedUntil.Before(end) {
			end = b.GrantedUntil
		}
	}
	return end
}

// movable refuses to move nodes that were moved to another store before.
func movable(from, to []lease.Block) error {
	for _, b := range to {
		if Block(b).Closed() {
			return fmt.Errorf("%w: node %d of the new store was moved to another one before; move it from there, "+
				"to a new table, prefix, name or file", lease.ErrInvalidRequest, b.Node)
		}
	}
	for _, b := range from {
		if Block(b).Closed() && nodesOf(to) != nodesOf(from) { // a Move raises all of them before it closes one
			return fmt.Errorf("%w: node %d of the old store was moved to another store before, and not to this one; "+
				"move the other nodes only", lease.ErrInvalidRequest, b.Node)
		}
	}
	return nil
}

// rewritten reports whether every block was written.
func rewritten(before, after []lease.Block) bool {
	for i, b := range after {
		if i < len(before) && b.Version == before[i].Version {
			return false
		}
	}
	return true
}

func nodesOf(blocks []lease.Block) (r NodeRange) {
	if len(blocks) > 0 {
		r.First = blocks[0].Node
	}
	for _, b := range blocks {
		r.Nodes += b.Nodes
	}
	return r
}
