// Package snowflake shows how other generators get their node numbers from a lease store: those of
// github.com/bwmarrin/snowflake and github.com/sony/sonyflake. Each kind of generator needs a store
// of its own:
//
//	traceflake lease create --without-secret --nodes 1024 --block-size 1 …    # Snowflake
//	traceflake lease create --without-secret --nodes 65536 --block-size 1 …   # Sonyflake
//
// Nothing is given back: with 1024 numbers and a TTL of a minute ([lease.WithTTL]), 1024 processes
// may run or start within a minute.
//
// Both libraries read the clock by themselves. So every ID is checked after it was generated: it is
// used only if the process held the number at the time that the ID contains. Two weaknesses remain:
// bwmarrin's library counts time from the creation of the node, so a stepped clock goes unnoticed
// until the Keeper drops the lease; Sonyflake sleeps while the clock is behind its last ID, so Next
// may block for as long as the clock was set back.
package snowflake

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"time"

	bwmarrin "github.com/bwmarrin/snowflake"
	"github.com/sony/sonyflake/v2"

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
	return next(ctx, s.Keeper, s.generate)
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

// Sonyflake generates Sonyflakes whose machine numbers are leased. It is safe for concurrent use.
type Sonyflake struct {
	Keeper *lease.Keeper // started without secrets

	mu    sync.Mutex
	lease context.Context // of the machine number
	sony  *sonyflake.Sonyflake
}

// Next returns an ID, as [Snowflake.Next] does.
func (s *Sonyflake) Next(ctx context.Context) (int64, error) {
	return next(ctx, s.Keeper, s.generate)
}

func (s *Sonyflake) generate(ctx context.Context) (id int64, held bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	nodes, err := s.Keeper.Nodes(ctx)
	if err != nil {
		return id, false, err
	}
	if s.lease != nodes.Context() {
		machine := func() (int, error) { return int(nodes.First), nil }
		if s.sony, err = sonyflake.New(sonyflake.Settings{MachineID: machine}); err != nil {
			return id, false, err
		}
		s.lease = nodes.Context()
	}
	if id, err = s.sony.NextID(); err != nil {
		return id, false, err
	}
	return id, nodes.Hold(s.sony.ToTime(id)), nil
}

// next returns the first ID that was generated while its node was held.
func next[ID any](ctx context.Context, k *lease.Keeper,
	generate func(context.Context) (id ID, held bool, err error)) (none ID, err error) {
	for {
		if err = k.Ready(ctx); err == nil { // which waits for the first lease, without a lock
			id, held, failed := generate(ctx)
			if held {
				return id, nil
			}
			err = failed
		}
		waits := errors.Is(err, lease.ErrNoLease) || errors.Is(err, randflake.ErrLeaseExpired)
		if err != nil && !waits || lease.Permanent(err) {
			return none, err
		}
		select {
		case <-ctx.Done():
			return none, cmp.Or(err, ctx.Err())
		case <-time.After(10 * time.Millisecond):
		}
	}
}
