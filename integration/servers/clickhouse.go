package servers

import (
	"context"
	"crypto/rand"
	"errors"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"sync"
	"time"
)

// Engine is a fresh database on a ClickHouse. It is safe for concurrent use.
type Engine struct {
	dsn   url.URL
	local bool // in this process
}

// ClickHouse returns a fresh database on the ClickHouse of this process, which
// starts with the first call and ends with the last Close, or on the server of
// TRACEFLAKE_CLICKHOUSE_DSN. The error is child.ErrNotInstalled if neither is
// available, and names the address of a server that does not answer.
func ClickHouse(ctx context.Context) (*Engine, error) {
	dsn := os.Getenv("TRACEFLAKE_CLICKHOUSE_DSN")
	e := &Engine{local: dsn == ""}
	if e.local {
		var err error
		if dsn, err = acquire(); err != nil {
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
		return nil, errors.Join(err, e.release())
	}
	e.dsn = *u
	e.dsn.Path = "/" + name
	return e, nil
}

// DSN is the address of the database, http://user:password@host:port/database,
// in the form of clickhouse-go and the Collector's exporter.
func (e *Engine) DSN() string { return e.dsn.String() }

// Database is the name of the database.
func (e *Engine) Database() string { return strings.TrimPrefix(e.dsn.Path, "/") }

// Close drops the database and, on the last Engine of the process, ends the
// engine and removes its data. Running statements are waited for.
func (e *Engine) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	_, err := post(ctx, &e.dsn, "DROP DATABASE "+e.Database()+" SYNC")
	return errors.Join(err, e.release())
}

// shared is the one engine that libchdb allows in a process.
var shared struct {
	sync.Mutex
	users int
	dsn   string
	stop  func() error
}

func acquire() (dsn string, err error) {
	shared.Lock()
	defer shared.Unlock()
	if shared.users == 0 {
		if shared.dsn, shared.stop, err = startClickHouse(); err != nil {
			return "", err
		}
	}
	shared.users++
	return shared.dsn, nil
}

func (e *Engine) release() error {
	if !e.local {
		return nil
	}
	shared.Lock()
	defer shared.Unlock()
	if shared.users--; shared.users > 0 {
		return nil
	}
	return shared.stop()
}

func startClickHouse() (dsn string, stop func() error, err error) {
	lib, err := loadChdb()
	if err != nil {
		return "", nil, err
	}
	dir, err := os.MkdirTemp("", "traceflake-chdb-")
	if err != nil {
		return "", nil, err
	}
	open, err := lib.open(dir) // keeps the engine running between statements
	if err != nil {
		return "", nil, errors.Join(err, os.RemoveAll(dir))
	}
	password := rand.Text()
	server := httptest.NewServer(&gateway{password, lib, dir})
	at := url.URL{Scheme: "http", User: url.UserPassword("default", password),
		Host: server.Listener.Addr().String()}
	return at.String(), func() error {
		server.Close()
		open.close()
		return os.RemoveAll(dir)
	}, nil
}
