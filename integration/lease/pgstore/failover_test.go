//go:build unix

package pgstore

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/traceflake/traceflake/integration/servers"
	"github.com/traceflake/traceflake/integration/servers/child"
	"github.com/traceflake/traceflake/internal/network"
)

// cluster is a primary with an asynchronous standby.
type cluster struct {
	tb               testing.TB
	primary, standby *servers.PostgresInstance
	replication      *network.Proxy
}

func newCluster(tb testing.TB) *cluster {
	tb.Helper()
	c := &cluster{tb: tb, primary: child.ForTest(tb, servers.StartPostgres)}
	if err := c.follow(); err != nil {
		tb.Fatal(err)
	}
	return c
}

// follow gives the primary another standby.
func (c *cluster) follow() error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	c.replication = network.NewProxy(c.tb, c.primary.Address)
	standby, err := c.primary.Standby(ctx, c.replication.Address())
	if err == nil {
		c.tb.Cleanup(func() { _ = standby.Close() })
	}
	c.standby = standby
	return err
}

// failover promotes the standby, which lacks what was committed while the network was cut. It
// returns the old primary, which still runs.
func (c *cluster) failover(cut func()) (old *servers.PostgresInstance, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	c.replication.Cut()
	cut()
	had, err := stored(ctx, c.primary)
	has, failed := stored(ctx, c.standby)
	if had == has {
		failed = errors.Join(failed, errors.New("the standby lacks nothing"))
	}
	old, c.primary = c.primary, c.standby
	return old, errors.Join(err, failed, c.primary.Promote(ctx))
}

// stored returns a hash of the pages at a server.
func stored(ctx context.Context, s *servers.PostgresInstance) (sum string, err error) {
	conn, err := pgx.Connect(ctx, s.DSN())
	if err != nil {
		return "", err
	}
	defer func() { _ = conn.Close(ctx) }()
	err = conn.QueryRow(ctx, "SELECT md5(string_agg(encode(data, 'hex'), ' ' ORDER BY name)) "+
		"FROM traceflake_store").Scan(&sum)
	return sum, err
}

// redirect ends the connections through a proxy, which from now on leads to another server.
func redirect(p *network.Proxy, to *servers.PostgresInstance) {
	p.Serve(to.Address)
	p.Cut()
	p.Mend()
}
