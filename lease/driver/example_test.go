package driver_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/driver"
	"github.com/traceflake/traceflake/randflake"
)

// one is a store of a single block. A store of more keeps each of them in a row
// or under a key, and changes it in a transaction where this one holds a lock.
type one struct {
	mu    sync.Mutex
	block driver.Block
}

func (s *one) Acquire(_ context.Context, r lease.Request) (lease.Grant, error) {
	if err := driver.CheckRequest(r, time.Now()); err != nil {
		return lease.Grant{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.block.Nonce == r.Nonce { // asked for again
		return s.block.Grant(), nil
	}
	return s.write(s.block.Acquire(r))
}

func (s *one) Renew(_ context.Context, g lease.Grant, r lease.Request) (lease.Grant, error) {
	if err := driver.CheckRequest(r, time.Now()); err != nil {
		return lease.Grant{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.write(s.block.Renew(g, r))
}

func (s *one) Release(_ context.Context, g lease.Grant, nonce string, unused time.Time) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, err := s.write(s.block.Release(g, nonce, unused))
	return err
}

func (s *one) Get(context.Context, uint32) (lease.Grant, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.block.Grant(), nil
}

func (s *one) write(b driver.Block, err error) (lease.Grant, error) {
	if err != nil {
		return lease.Grant{}, err
	}
	s.block = b
	return b.Grant(), nil
}

// A store reads a block, applies the rule and writes the result, in one step.
func Example() {
	codec, err := randflake.NewCodec([]byte("16 secret bytes!"))
	if err != nil {
		panic(err)
	}
	ctx := context.Background()
	store := &one{block: driver.NodeRange{First: 64, Nodes: 8, BlockSize: 8}.Block(0)}
	keeper, err := lease.Start(ctx, store, codec)
	if err != nil {
		panic(err)
	}
	if err := keeper.Ready(ctx); err != nil {
		panic(err)
	}

	_, err = store.Acquire(ctx, lease.Request{Nonce: lease.NewNonce(), Now: time.Now(), TTL: time.Minute})
	fmt.Println(errors.Is(err, lease.ErrNoFreeNode), keeper.Close(ctx))
	// Output: true <nil>
}
