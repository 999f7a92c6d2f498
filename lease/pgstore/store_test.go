package pgstore_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/traceflake/traceflake/internal/calls"
	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/driver"
	"github.com/traceflake/traceflake/lease/pgstore"
)

// A request that is repeated while the server still commits the first one finds its grant.
func TestRepeatedAcquire(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	pool := connect(t, database(t), nil)
	s, r := created(t, pool), calls.Request(time.Now())
	first, err := pool.Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = first.Rollback(ctx) }()
	if _, err := first.Exec(ctx, "UPDATE traceflake_leases SET version = 1, nonce = $1 WHERE node = $2", r.Nonce, few.BlockSize); err != nil {
		t.Fatal(err)
	}
	var g lease.Grant
	answered := make(chan error, 1)
	go func() {
		var err error
		g, err = s.Acquire(ctx, r)
		answered <- err
	}()
	for waiting := 0; waiting == 0 && ctx.Err() == nil; time.Sleep(time.Millisecond) {
		waiting = value[int](t, pool, "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'")
	}
	if err := first.Commit(ctx); err != nil {
		t.Fatal(err)
	}
	if err := <-answered; err != nil || g.Node != few.BlockSize {
		t.Errorf("acquire: got %+v, %v; want the block %d", g, err, few.BlockSize)
	}
}

// counter counts statements.
type counter struct{ n atomic.Int64 }

func (c *counter) TraceQueryStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceQueryStartData) context.Context {
	c.n.Add(1)
	return ctx
}

func (c *counter) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

// Those of a process and of a fleet are in docs/operating.md.
func TestRequests(t *testing.T) {
	var statements counter
	config := connect(t, database(t), nil).Config()
	config.ConnConfig.Tracer = &statements
	calls.Costs(t, func() (driver.Store, error) { return pgstore.New(config) }, &statements.n, map[string]int64{
		"start": 1, "acquire": 1, "acquire again": 1, "acquire in vain": 1, "renew": 1, "get": 1, "release": 1, "list": 2,
		"add secret": 1, "raise": 4, // begin, commit, and two between
	})
}
