package servers

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/traceflake/traceflake/integration/servers/child"
)

// PostgresServer is a fresh database on a PostgreSQL. It is safe for concurrent use.
type PostgresServer struct {
	admin  string
	dsn    *url.URL
	local  *child.Server // nil for a server given by its DSN
	closed sync.Once
	err    error // of Close
}

// Postgres returns a fresh database on its own PostgreSQL, or on the
// server of TRACEFLAKE_POSTGRES_DSN. The error is ErrNotInstalled if neither
// is available, and names the address of a server that does not answer.
//
// The server keeps PostgreSQL's durable defaults, so that the time a commit
// takes is that of this machine's disk.
func Postgres(ctx context.Context) (*PostgresServer, error) {
	s := new(PostgresServer)
	s.admin = os.Getenv("TRACEFLAKE_POSTGRES_DSN")
	if s.admin == "" {
		var err error
		if s.local, s.admin, err = startPostgres(ctx); err != nil {
			return nil, err
		}
	}
	u, err := url.Parse(s.admin)
	if err != nil || u.Host == "" || u.Scheme != "postgres" && u.Scheme != "postgresql" {
		return nil, errors.New("servers: TRACEFLAKE_POSTGRES_DSN must be postgres://user:password@host:port/database")
	}
	name := "traceflake_" + strings.ToLower(rand.Text())
	if err := s.exec(ctx, "CREATE DATABASE "+name); err != nil {
		if s.local != nil {
			err = errors.Join(err, s.local.Close())
		}
		return nil, err
	}
	u.Path = "/" + name
	s.dsn = u
	return s, nil
}

// DSN is the address of the database, postgres://user:password@host:port/database.
func (s *PostgresServer) DSN() string { return s.dsn.String() }

// Close drops the database, with connections that are still open, and ends the
// server if it was started here.
func (s *PostgresServer) Close() error {
	s.closed.Do(func() {
		if s.local != nil {
			s.err = s.local.Close()
			return
		}
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		s.err = s.exec(ctx, "DROP DATABASE "+strings.TrimPrefix(s.dsn.Path, "/")+" WITH (FORCE)")
	})
	return s.err
}

func (s *PostgresServer) exec(ctx context.Context, sql string) error {
	conn, err := pgx.Connect(ctx, s.admin)
	if err != nil {
		return fmt.Errorf("servers: PostgreSQL: %w", err) // pgx names the address and hides the password
	}
	_, err = conn.Exec(ctx, sql)
	return errors.Join(err, conn.Close(ctx))
}
