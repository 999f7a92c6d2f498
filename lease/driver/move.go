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

// quiet is how long after the last grant's end nothing is granted during a Move.
const quiet = 2 * time.Minute

// Move moves nodes to another store, for good: from grants and renews none of
// them any more, and to grants none of their seconds before the time that Move
// returns, which is after the end of every grant of from. Holders use their
// leases of from to the end. The result depends on no clock.
//
// The stores must be opened with the same nodes; their block sizes may differ.
// If Move fails, call it again with the same stores. (If its last call failed,
// and from has no clock, and a client whose clock was 2 minutes ahead acquired a
// block during the Move, the second Move does not see that grant.)
func Move(ctx context.Context, from, to lease.Admin) (time.Time, error) {
	// Nobody can renew after the first raise. It also keeps clients with correct
	// clocks from acquiring blocks until the second.
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

	// A client whose clock is far ahead may have acquired a block in between. Its
	// grant's start is known, and how long it lasts at most.
	after, err := from.List(ctx)
	if err != nil {
		return end, err
	}
	missed := end
	for i, b := range after {
		if i < len(before) && b.Version != before[i].Version+1 && b.Start != before[i].Start {
			if until := b.Start.Add(lease.MaxTTL); until.After(missed) {
				missed = until
			}
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
				"or remove this store's data first", lease.ErrInvalidRequest, b.Node)
		}
	}
	for _, b := range from {
		if Block(b).Closed() && nodesOf(to).Nodes == 0 {
			return fmt.Errorf("%w: node %d of the old store was moved to another store before, and this one is empty",
				lease.ErrInvalidRequest, b.Node)
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
