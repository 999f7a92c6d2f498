package engine_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/traceflake/traceflake/internal/calls"
	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/driver"
	"github.com/traceflake/traceflake/lease/stores"
	"github.com/traceflake/traceflake/randflake"
)

var t0 = time.Date(2026, 5, 4, 3, 2, 1, 0, time.UTC)

var errLost = errors.New("the answer was lost")

// counted is a server in memory that counts requests.
type counted = calls.Memory

// wire is between a client and its server. It calls on with the data of a write, nil for a read,
// and a function that sends the request, any number of times.
type wire struct {
	*counted
	on func(ctx context.Context, data []byte, send func() error) error
}

func (w wire) Read(ctx context.Context, name string) (o driver.Object, err error) {
	err = w.on(ctx, nil, func() (err error) {
		o, err = w.counted.Read(ctx, name)
		return err
	})
	return o, err
}

func (w wire) Write(ctx context.Context, name string, data []byte,
	version, place string) (o driver.Object, err error) {
	err = w.on(ctx, data, func() (err error) {
		o, err = w.counted.Write(ctx, name, data, version, place)
		return err
	})
	return o, err
}

// writes returns a wire that calls on with each write only, and its data.
func writes(server *counted, on func(data []byte, send func() error) error) wire {
	return wire{server, func(_ context.Context, data []byte, send func() error) error {
		if data != nil {
			return on(data, send)
		}
		return send()
	}}
}

// few is blocks of 8 nodes.
func few(blocks uint32) lease.Description {
	return lease.Description{Nodes: 8 * blocks, BlockSize: 8}
}

// opened is a client of a store, and its description.
type opened struct {
	stores.Store
	lease.Description
}

// request returns a request for a minute, in the store's history.
func (o opened) request(now time.Time) lease.Request { return calls.Request(o.ID, now) }

// open returns a client of the store on a server. If the store does not exist, open creates it, but
// not over the wire.
func open(s driver.Objects, perPage uint32, nodes lease.Description) opened {
	bare := s
	if w, ok := s.(wire); ok {
		bare = w.counted
	}
	nodes.LongestTTL = lease.MaxTTL
	d, err := client(bare, perPage).Create(context.Background(), nodes, calls.Secret())
	if err != nil && !errors.Is(err, lease.ErrExists) {
		panic(err)
	}
	return opened{client(s, perPage), d}
}

// client returns a client of a server that may have no store.
func client(s driver.Objects, perPage uint32) stores.Store {
	store, err := stores.New(s, driver.Layout{Name: "teststore", BlocksPerPage: perPage})
	if err != nil {
		panic(err)
	}
	return store
}

// block is the grant of a block that was never granted.
func (o opened) block(node uint32) lease.Grant {
	return lease.Grant{Store: o.ID, Lease: randflake.Lease{Node: node, Nodes: 8}}
}

func mustAcquire(t *testing.T, s lease.Store, r lease.Request) lease.Grant {
	t.Helper()
	g, err := s.Acquire(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func mustRenew(t *testing.T, s lease.Store, g lease.Grant) lease.Grant {
	t.Helper()
	g, err := s.Renew(t.Context(), g, calls.Renewal(g))
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func wantErr(t *testing.T, what string, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("%s: got error %v, want %v", what, err, want)
	}
}

// wantUnknown checks that an error says neither that something was written nor that it was not.
func wantUnknown(t *testing.T, what string, err error) {
	t.Helper()
	if err == nil || errors.Is(err, lease.ErrLost) || errors.Is(err, lease.ErrNoFreeNode) {
		t.Errorf("%s: got error %v, want one that is not definite", what, err)
	}
}

// wantWrites checks how many writes f sends.
func wantWrites(t *testing.T, what string, server *counted, want int, f func()) {
	t.Helper()
	before := server.Writes
	if f(); server.Writes-before != want {
		t.Errorf("%s: %d writes, want %d", what, server.Writes-before, want)
	}
}
