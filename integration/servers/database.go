package servers

import (
	"context"
	"crypto/rand"
	"errors"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/traceflake/traceflake/integration/servers/child"
)

// database is a fresh database on a server. It is safe for concurrent use.
type database struct {
	dsn   *url.URL
	local *child.Server // nil for a server given by its DSN
	drop  func(context.Context) error
}

// kind is ClickHouse or PostgreSQL.
type kind struct {
	variable string // of a server's DSN
	start    func(context.Context) (s *child.Server, dsn string, err error)
	exec     func(ctx context.Context, dsn, sql string) error
	now      string // ends DROP DATABASE
}

// create returns a database on a server of its own, a child of this process, or on the server of
// the variable. The error is child.ErrNotInstalled if neither is available; if a server does not
// answer, the error contains its address.
func (k kind) create(ctx context.Context) (d database, err error) {
	defer func() {
		if err != nil && d.local != nil {
			err = errors.Join(err, d.local.Close())
		}
	}()
	dsn := os.Getenv(k.variable)
	if dsn == "" {
		if d.local, dsn, err = k.start(ctx); err != nil {
			return d, err
		}
	}
	at, err := url.Parse(dsn)
	if err != nil {
		return d, errors.New("servers: " + k.variable + " is not a URL")
	}
	name := "traceflake_" + strings.ToLower(rand.Text())
	at.Path = "/" + name
	d.dsn = at
	d.drop = func(ctx context.Context) error {
		return k.exec(ctx, dsn, "DROP DATABASE IF EXISTS "+name+k.now)
	}
	return d, k.exec(ctx, dsn, "CREATE DATABASE "+name)
}

// DSN returns the address of the database, with a user and a password.
func (d *database) DSN() string { return d.dsn.String() }

// Database returns the name of the database.
func (d *database) Database() string { return strings.TrimPrefix(d.dsn.Path, "/") }

// Close ends the server and removes its data, or drops the database on a server given by its DSN,
// with connections that are still open.
func (d *database) Close() error {
	if d.local != nil {
		return d.local.Close()
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	return d.drop(ctx)
}
