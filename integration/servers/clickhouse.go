package servers

import (
	"context"
	"crypto/rand"
	"errors"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/traceflake/traceflake/integration/servers/child"
)

// Engine is a fresh database on a ClickHouse. It is safe for concurrent use.
type Engine struct {
	dsn   url.URL
	local *child.Server // nil for a server given by its DSN
}

// ClickHouse returns a fresh database on a ClickHouse of its own, a child of this process, or on
// the server of TRACEFLAKE_CLICKHOUSE_DSN. The error is child.ErrNotInstalled if neither is
// available; if a server does not answer, the error contains its address.
func ClickHouse(ctx context.Context) (_ *Engine, err error) {
	e, dsn := new(Engine), os.Getenv("TRACEFLAKE_CLICKHOUSE_DSN")
	if dsn == "" {
		if e.local, dsn, err = startClickHouse(ctx); err != nil {
			return nil, err
		}
	}
	u, err := url.Parse(dsn)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, errors.New("servers: TRACEFLAKE_CLICKHOUSE_DSN must be the address of " +
			"ClickHouse's HTTP interface, http://user:password@host:8123 or https://…")
	}
	name := "traceflake_" + strings.ToLower(rand.Text())
	if _, err := post(ctx, u, "CREATE DATABASE "+name); err != nil {
		if e.local != nil {
			err = errors.Join(err, e.local.Close())
		}
		return nil, err
	}
	e.dsn = *u
	e.dsn.Path = "/" + name
	return e, nil
}

// DSN returns the address of the database, http://user:password@host:port/database, in the form of
// clickhouse-go and the Collector's exporter.
func (e *Engine) DSN() string { return e.dsn.String() }

// Database returns the name of the database.
func (e *Engine) Database() string { return strings.TrimPrefix(e.dsn.Path, "/") }

// CPU returns the CPU time that the server has used.
func (e *Engine) CPU() (time.Duration, error) {
	if e.local == nil {
		return 0, errors.New("servers: the CPU time of a server given by its DSN is unknown")
	}
	return e.local.CPU()
}

// Close ends the server and removes its data, or drops the database on a server given by its DSN.
func (e *Engine) Close() error {
	if e.local != nil {
		return e.local.Close()
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	_, err := post(ctx, &e.dsn, "DROP DATABASE "+e.Database()+" SYNC")
	return err
}

const (
	clickhouse  = "clickhouse" // what a server is started as
	passwordVar = "TRACEFLAKETEST_CHILD_PASSWORD"
)

func init() {
	child.Main(clickhouse, func(args []string) error {
		return serveClickHouse(args[0], args[1], args[2], os.Getenv(passwordVar))
	})
}

// startClickHouse starts this program again as a ClickHouse.
func startClickHouse(ctx context.Context) (_ *child.Server, dsn string, err error) {
	// npm calls the library libchdb.so on macOS too.
	lib, err := engineFile("ClickHouse", "@chdb/*/libchdb.so", "TRACEFLAKE_CLICKHOUSE_DSN")
	if err != nil {
		return nil, "", err
	}
	s, password := &child.Server{Name: "ClickHouse"}, rand.Text()
	if s.Dir, err = os.MkdirTemp("", "traceflake-chdb-"); err != nil {
		return nil, "", err
	}
	s.Command = func() *exec.Cmd {
		cmd := child.Self(clickhouse, lib, s.Dir, s.Address)
		cmd.Env = append(cmd.Env, passwordVar+"="+password)
		return cmd
	}
	s.Answers = s.Listens
	if err := s.Start(ctx); err != nil {
		return nil, "", errors.Join(err, s.Close())
	}
	at := url.URL{Scheme: "http", User: url.UserPassword("default", password), Host: s.Address}
	return s, at.String(), nil
}
