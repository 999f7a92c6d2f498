package driver

import (
	"fmt"
	"time"

	"github.com/traceflake/traceflake/randflake"
	"github.com/traceflake/traceflake/randflake/lease"
)

// Block is a [lease.Block] with the rule of granting, in one place: its methods
// return the block's next state, with the version raised by one, or say why
// there is none.
type Block lease.Block

// Grant returns the block as the grant that it last was.
func (b Block) Grant() lease.Grant {
	return lease.Grant{
		Lease:   randflake.Lease{Node: b.Node, Nodes: b.Nodes, Start: b.Start, End: b.GrantedUntil},
		Holder:  b.Holder,
		Version: b.Version,
		Owner:   b.Owner,
	}
}

// Free tells whether the block may be granted at now, cut to a whole second:
// it is free if GrantedUntil is not after it.
func (b Block) Free(now time.Time) bool {
	return b.GrantedUntil.Unix() <= now.Unix()
}

// Acquire grants the block for [now, now+TTL). The request must have passed
// [CheckRequest]. Errors: [lease.ErrNoFreeNode] if the block is not free.
//
// Asking whether some block has the holder already is up to the store.
func (b Block) Acquire(r lease.Request) (Block, error) {
	if !b.Free(r.Now) {
		return b, fmt.Errorf("%w: node %d is granted until %s", lease.ErrNoFreeNode, b.Node, text(b.GrantedUntil))
	}
	b.Start = second(r.Now)
	b.GrantedUntil = capEnd(b.Start.Add(r.TTL))
	b.Holder, b.Owner = r.Holder, r.Owner
	b.Version++
	return b, nil
}

// Renew moves the block's end to end, cut to a whole second and to the end of
// life, unless it is that late already, and makes next its holder. The block
// changes in any case: of two clients that hold one grant only one can renew.
// Errors: [lease.ErrLost], [lease.ErrInvalidRequest].
func (b Block) Renew(g lease.Grant, next string, end time.Time) (Block, error) {
	if err := b.held(g, next); err != nil {
		return b, err
	}
	if end = capEnd(end); end.After(b.GrantedUntil) {
		b.GrantedUntil = end
	}
	b.Holder = next
	b.Version++
	return b, nil
}

// Release takes back the seconds from unused on, rounded up to a whole second.
// Of the seconds from Start to GrantedUntil it never takes back more than there
// are. It leaves next as a holder that nobody is, so that a client which holds
// the grant as well sees who ended it. Errors: [lease.ErrLost],
// [lease.ErrInvalidRequest].
func (b Block) Release(g lease.Grant, next string, unused time.Time) (Block, error) {
	if err := b.held(g, next); err != nil {
		return b, err
	}
	unused = roundUp(unused)
	if unused.Before(b.Start) {
		unused = b.Start
	}
	if unused.Before(b.GrantedUntil) {
		b.GrantedUntil = unused
	}
	b.Holder, b.Owner = next, ""
	b.Version++
	return b, nil
}

// Raise moves GrantedUntil to until, rounded up to a whole second, unless it
// is later, and empties the holder, which nothing else does.
func (b Block) Raise(until time.Time) Block {
	if until = roundUp(until); until.After(b.GrantedUntil) {
		b.GrantedUntil = until
	}
	b.Holder, b.Owner = "", ""
	b.Version++
	return b
}

// held refuses a write by a client that does not hold the block, or that does
// not name its write.
func (b Block) held(g lease.Grant, next string) error {
	switch {
	case b.Node != g.Node || b.Nodes != g.Nodes:
		return fmt.Errorf("%w: nodes %d+%d are not the block %d+%d",
			lease.ErrInvalidRequest, g.Node, g.Nodes, b.Node, b.Nodes)
	case g.Holder == "":
		return fmt.Errorf("%w: the grant has no holder", lease.ErrInvalidRequest)
	case next == g.Holder:
		return fmt.Errorf("%w: the next holder is the present one, want a fresh one",
			lease.ErrInvalidRequest)
	}
	if err := checkHolder(next); err != nil {
		return err
	}
	switch {
	case b.Holder != g.Holder:
		return fmt.Errorf("%w: node %d has another holder, or none", lease.ErrLost, b.Node)
	case b.Version != g.Version:
		return fmt.Errorf("%w: node %d has version %d, not %d", lease.ErrLost, b.Node, b.Version, g.Version)
	}
	return nil
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
