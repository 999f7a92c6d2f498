package engine

import (
	"cmp"
	"fmt"
	"time"

	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/driver"
	"github.com/traceflake/traceflake/randflake"
)

// The rules for granting, in one place. Each function returns the next state of a block, at a time
// of the store's clock and with the version raised by one, or an error. The request has passed
// checkRequest.

// acquire grants the block for [now, now+TTL), truncated to whole seconds. No block has the nonce.
// Errors: [lease.ErrNoFreeNode] if the block is not free, [lease.ErrClockAhead].
func acquire(b lease.Grant, r lease.Request, clock time.Time) (lease.Grant, error) {
	behind, err := checkClock(r.Now, clock)
	if err != nil {
		return b, err
	}
	if !b.Free(r.Now) {
		return b, fmt.Errorf("%w: node %d is granted until %s", lease.ErrNoFreeNode, b.Node,
			text(b.End))
	}
	b.Start = whole(r.Now)
	b.End = whole(b.Start.Add(r.TTL))
	b.Acquired, b.Nonce, b.Owner, b.Behind = r.Nonce, r.Nonce, r.Owner, behind
	b.Version++
	return b, nil
}

// renew moves the block's end to now+TTL, truncated to a whole second and limited to the end of
// life, unless it is that late already. The block always changes: if two clients hold one grant,
// only one can renew. Errors: [lease.ErrLost], [lease.ErrInvalidRequest], [lease.ErrClockAhead].
func renew(b, g lease.Grant, r lease.Request, clock time.Time) (lease.Grant, error) {
	behind, err := checkClock(r.Now, clock)
	if err := cmp.Or(err, allow(b, g, r.Nonce)); err != nil {
		return b, err
	}
	if end := whole(r.Now.Add(r.TTL)); end.After(b.End) {
		b.End = end
	}
	b.Nonce, b.Behind = r.Nonce, behind
	b.Version++
	return b, nil
}

// allow returns an error for a write by a client that does not hold the block or has no fresh
// nonce.
func allow(b, g lease.Grant, nonce string) error {
	switch {
	case nonce == g.Nonce:
		return driver.Invalid("the nonce is the grant's, want a fresh one")
	case b.Nonce != g.Nonce || b.Version != g.Version || b.Version == 0:
		return fmt.Errorf("%w: node %d has another nonce, or none, or version %d instead of %d",
			lease.ErrLost, b.Node, b.Version, g.Version)
	}
	return nil
}

// whole truncates a time to a whole second, and limits it to the end of life.
func whole(t time.Time) time.Time {
	return time.Unix(min(t.Unix(), randflake.EndOfLife), 0).UTC()
}

func text(t time.Time) string { return t.UTC().Format(time.RFC3339) }
