// Package snowflake shows how other generators get their node numbers from a lease store: those of
// github.com/bwmarrin/snowflake and github.com/sony/sonyflake. Each kind of generator needs a store
// of its own:
//
//	traceflake lease create --nodes 0+1024 --block-size 1 …    # Snowflake
//	traceflake lease create --nodes 0+65536 --block-size 1 …   # Sonyflake
//
// Both libraries read the clock by themselves. So every ID is checked after it was generated: it is
// used only if the process held the number at the time that the ID contains. Two weaknesses remain:
// bwmarrin's library counts time from the creation of the node, so a stepped clock goes unnoticed
// until the Keeper drops the lease; Sonyflake sleeps while the clock is behind its last ID, so Next
// may block for as long as the clock was set back.
package snowflake

import (
	"context"
	"sync"
	"time"

	bwmarrin "github.com/bwmarrin/snowflake"
	"github.com/sony/sonyflake/v2"

	"github.com/traceflake/traceflake/lease"
)

// Snowflake generates Snowflakes whose node numbers are leased. It is safe for concurrent use.
type Snowflake struct {
	Keeper *lease.Keeper

	mu    sync.Mutex
	nodes *lease.Nodes
	node  *bwmarrin.Node
}

// Next returns an ID. It waits for a lease until ctx ends.
func (s *Snowflake) Next(ctx context.Context) (bwmarrin.ID, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		if s.nodes == nil || s.nodes.Context().Err() != nil {
			nodes, err := s.Keeper.Nodes(ctx)
			if err != nil {
				return 0, err
			}
			if s.node, err = bwmarrin.NewNode(int64(nodes.First)); err != nil {
				return 0, err
			}
			s.nodes = nodes
		}
		id := s.node.Generate()
		if s.nodes.Hold(time.UnixMilli(id.Time())) {
			return id, nil
		}
		if err := pause(ctx); err != nil {
			return 0, err
		}
	}
}

// Sonyflake generates Sonyflakes whose machine numbers are leased. It is safe for concurrent use.
type Sonyflake struct {
	Keeper *lease.Keeper

	mu    sync.Mutex
	nodes *lease.Nodes
	sony  *sonyflake.Sonyflake
}

// Next returns an ID. It waits for a lease until ctx ends.
func (s *Sonyflake) Next(ctx context.Context) (int64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		if s.nodes == nil || s.nodes.Context().Err() != nil {
			nodes, err := s.Keeper.Nodes(ctx)
			if err != nil {
				return 0, err
			}
			machine := func() (int, error) { return int(nodes.First), nil }
			if s.sony, err = sonyflake.New(sonyflake.Settings{MachineID: machine}); err != nil {
				return 0, err
			}
			s.nodes = nodes
		}
		id, err := s.sony.NextID()
		if err != nil {
			return 0, err
		}
		if s.nodes.Hold(s.sony.ToTime(id)) {
			return id, nil
		}
		if err := pause(ctx); err != nil {
			return 0, err
		}
	}
}

// pause lets some time pass before another try.
func pause(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(10 * time.Millisecond):
		return nil
	}
}
