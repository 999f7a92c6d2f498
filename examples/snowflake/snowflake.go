// Package snowflake shows how another generator, github.com/bwmarrin/snowflake, gets its node
// numbers from a lease store. Each kind of generator needs a store of its own:
//
//	traceflake lease create --without-secret --nodes 1024 --block-size 1 …
//
// Nothing is given back: with 1024 numbers and a TTL of a minute ([lease.WithTTL]), 1024 processes
// may run or start within a minute.
//
// The library reads the clock by itself. So every ID is checked after it was generated: it is used
// only if the process held the number at the time that the ID contains. A weakness remains: the
// library counts time from the creation of the node, so a stepped clock goes unnoticed until the
// Keeper drops the lease.
package snowflake

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"time"

	bwmarrin "github.com/bwmarrin/snowflake"

	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/randflake"
)

// Snowflake generates Snowflakes whose node numbers are leased. It is safe for concurrent use.
type Snowflake struct {
	Keeper *lease.Keeper // started without secrets

	mu    sync.Mutex
	lease context.Context // of the node
	node  *bwmarrin.Node
}

// Next returns an ID. Without a lease it waits for one until ctx ends. An error that retrying
// cannot fix is returned at once.
func (s *Snowflake) Next(ctx context.Context) (bwmarrin.ID, error) {
	for {
		err := s.Keeper.Ready(ctx) // which waits for the first lease, without a lock
		if err == nil {
			id, held, failed := s.generate(ctx)
			if held {
				return id, nil
			}
			err = failed
		}
		waits := errors.Is(err, lease.ErrNoLease) || errors.Is(err, randflake.ErrLeaseExpired)
		if err != nil && !waits || lease.Permanent(err) {
			return 0, err
		}
		select {
		case <-ctx.Done():
			return 0, cmp.Or(err, ctx.Err())
		case <-time.After(10 * time.Millisecond):
		}
	}
}

func (s *Snowflake) generate(ctx context.Context) (id bwmarrin.ID, held bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	nodes, err := s.Keeper.Nodes(ctx)
	if err != nil {
		return id, false, err
	}
	if s.lease != nodes.Context() { // a second generator of one lease would repeat IDs
		if s.node, err = bwmarrin.NewNode(int64(nodes.First)); err != nil {
			return id, false, err
		}
		s.lease = nodes.Context()
	}
	id = s.node.Generate()
	return id, nodes.Hold(time.UnixMilli(id.Time())), nil
}
