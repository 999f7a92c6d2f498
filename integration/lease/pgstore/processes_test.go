//go:build unix

package pgstore

import (
	"context"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/traceflake/traceflake/integration/lease/processes"
	"github.com/traceflake/traceflake/integration/servers"
	"github.com/traceflake/traceflake/integration/servers/child"
)

// Processes reach the server through a bad network. While it is cut the server
// crashes, and forgets each commit that did not wait for the disk: as is the
// default in this database.
func TestProcesses(t *testing.T) {
	server := servers.PostgresForTest(t)
	admin := server.Connect(t)
	execute(t, admin, "ALTER DATABASE "+value[string](t, admin, "SELECT quote_ident(current_database())")+" SET synchronous_commit = off")
	proxy, dsn := relayed(t, server.DSN())
	processes.Run(t, dsn, func(during func()) error {
		proxy.Cut()
		defer func() {
			proxy.Mend()
			proxy.Lose()
		}()
		if ownServer {
			if err := crash(server.DSN()); err != nil {
				return err
			}
		}
		during()
		return answers(server.DSN())
	})
	proxy.Check(t)
}

// crash kills one of the server's processes, upon which it ends all others and
// recovers from its log.
func crash(dsn string) error {
	ctx := context.Background()
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(ctx) }()
	var pid int
	if err := conn.QueryRow(ctx, "SELECT pg_backend_pid()").Scan(&pid); err != nil {
		return err
	}
	return syscall.Kill(pid, syscall.SIGKILL)
}

// answers waits until a server answers.
func answers(dsn string, server ...*child.Server) error {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	return child.Ready(ctx, func(ctx context.Context) error {
		conn, err := pgx.Connect(ctx, dsn)
		if err != nil {
			return err
		}
		return conn.Close(ctx)
	}, server...)
}
