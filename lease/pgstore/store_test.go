package pgstore_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/pgstore"
)

// A grant says which write of which block it is. The block's end and owner are those of the row.
func TestGrantUnlikeTheRow(t *testing.T) {
	s, ctx := created(t, connect(t, database(t), nil)), context.Background()
	r := request(time.Now())
	r.Owner = "a"
	g, err := s.Acquire(ctx, r)
	if err != nil {
		t.Fatal(err)
	}
	for what, change := range map[string]func(*lease.Grant){
		"end":   func(g *lease.Grant) { g.End = g.Start },
		"owner": func(g *lease.Grant) { g.Owner = "b" },
	} {
		other := g
		change(&other)
		renewed, err := s.Renew(ctx, other, lease.Request{Nonce: lease.NewNonce(), Now: r.Now, TTL: time.Second})
		if err != nil || !renewed.End.Equal(g.End) || renewed.Owner != g.Owner {
			t.Fatalf("renew with another %s: got %+v, %v; want the end and owner of %+v", what, renewed, err, g)
		}
		g = renewed
	}
}

// A request that is repeated while the server still commits the first one finds its grant.
func TestRepeatedAcquire(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	pool := connect(t, database(t), nil)
	s, r := created(t, pool), request(time.Now())
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

// Those of a process, and how many requests a fleet makes with them, are in docs/operating.md.
func TestRequests(t *testing.T) {
	var statements counter
	pool := connect(t, database(t), nil)
	created(t, pool)
	config := pool.Config()
	config.ConnConfig.Tracer = &statements
	s, err := pgstore.New(config)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close(context.Background()) }()
	ctx, now := context.Background(), time.Now()
	var g lease.Grant
	again := request(now)
	for _, c := range []struct {
		what string
		want int64
		call func() error
	}{
		{"the first describe", 2, func() error { _, err := s.Describe(ctx); return err }}, // where is it, and what?
		{"acquire", 1, func() error { _, err := s.Acquire(ctx, again); return err }},
		{"acquire again, without an answer to the first", 1, func() (err error) { g, err = s.Acquire(ctx, again); return err }},
		{"renew", 1, func() (err error) {
			g, err = s.Renew(ctx, g, renewal(g))
			return err
		}},
		{"get", 1, func() error { _, err := s.Get(ctx, g.Node); return err }},
		{"release", 1, func() error { return s.Release(ctx, g, lease.NewNonce(), now) }},
		{"describe", 1, func() error { _, err := s.Describe(ctx); return err }},
		{"list", 2, func() error { _, err := s.List(ctx); return err }},
		{"add secret", 1, func() error { return s.AddSecret(ctx, "0123456789abcdef") }},
		{"raise", 4, func() error { _, err := s.Raise(ctx, now); return err }}, // begin, commit, and two between
	} {
		before := statements.n.Load()
		if err := c.call(); err != nil {
			t.Fatalf("%s: %v", c.what, err)
		}
		if got := statements.n.Load() - before; got != c.want {
			t.Errorf("%s: %d statements, want %d", c.what, got, c.want)
		}
	}
}
