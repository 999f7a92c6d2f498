package lease

import (
	"context"
	"fmt"
	"time"

	"github.com/traceflake/traceflake/randflake"
)

// Nodes are the node numbers of a lease, for generators other than Randflake's: every kind of
// Snowflake needs a number that no other process uses meanwhile. Create a store for them, without a
// secret, whose nodes are in the generator's range, with blocks of one node, and start the
// Keeper without secrets:
//
//	traceflake lease create --without-secret --nodes 1024 --block-size 1
//
// A generator that reads the clock by itself is unique in the fleet as long as every ID contains a
// time at which the process held the nodes. End it when the context ends, and check each ID, after
// it was generated, with Hold.
//
// The IDs have no key, so nothing separates those of two histories. Such a store begins none by
// itself: after it was restored or moved, it grants nothing until an operator has stopped the
// processes, waited for the longest lease, and begun a history: traceflake lease rekey.
//
// Nothing is given back: after Close, nobody is granted the nodes before the lease's end. Use a
// short TTL, such as a minute.
type Nodes struct {
	// First is the number, or the first of Count numbers.
	First, Count uint32
	// From is the start of the lease: no ID may contain an earlier time.
	From time.Time

	t *term
}

// Nodes returns the numbers that the Keeper holds, which must have been started without secrets.
// Like [Keeper.Ready], it waits for the first lease until ctx ends. After the first lease it does
// not wait: it returns an error while none is held.
func (k *Keeper) Nodes(ctx context.Context) (*Nodes, error) {
	if !k.nodesOnly {
		return nil, fmt.Errorf("%w: this Keeper leases nodes for IDs", ErrKeyless)
	}
	t, err := k.ready(ctx)
	if err != nil {
		return nil, err
	}
	return &Nodes{First: t.lease.Node, Count: t.lease.Nodes, From: t.lease.Start, t: t}, nil
}

// endEarly ends the term a margin before the lease's end. A timer calls it again until then: the
// Keeper's goroutine may be waiting for the store.
func (t *term) endEarly() {
	margin := min(t.keeper.ttl()/10, time.Second)
	left := t.expires().Add(-margin).Sub(t.keeper.cfg.clock().wall)
	if left > 0 && t.ctx.Err() == nil {
		time.AfterFunc(left, t.endEarly)
		return
	}
	t.end(randflake.ErrLeaseExpired)
	t.keeper.wake()
}

// Context returns a context that ends a tenth of the TTL, and at most a second, before the lease
// does, when the Keeper is closed, and when it notices that the lease was lost, that the clock was
// stepped, or that the machine was suspended or cloned. Its cause says which. Then ask the Keeper
// for other nodes.
func (n *Nodes) Context() context.Context { return n.t.ctx }

// Until returns the lease's end, which grows with every renewal: no ID may contain that time or a
// later one.
func (n *Nodes) Until() time.Time { return n.t.expires() }

// Hold reports whether an ID that contains this time may be used. Call it after the ID was
// generated: the process may have been stopped in between.
func (n *Nodes) Hold(at time.Time) bool {
	n.t.now()
	return n.t.ctx.Err() == nil && !at.Before(n.From) && at.Before(n.Until())
}
