package servers

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync"
	"time"
)

// Engine is a fresh database on a ClickHouse. It is safe for concurrent use.
type Engine struct {
	dsn    *url.URL
	local  bool // in this process
	closed sync.Once
	err    error // of Close
}

// ClickHouse returns a fresh database on the ClickHouse of this process, which
// starts with the first call and ends with the last Close, or on the server of
// TRACEFLAKE_CLICKHOUSE_DSN. The error is child.ErrNotInstalled if neither is
// available, and names the address of a server that does not answer.
func ClickHouse(ctx context.Context) (*Engine, error) {
	e := new(Engine)
	if dsn := os.Getenv("TRACEFLAKE_CLICKHOUSE_DSN"); dsn != "" {
		u, err := url.Parse(dsn)
		if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
			return nil, errors.New("servers: TRACEFLAKE_CLICKHOUSE_DSN must be the address of ClickHouse's HTTP interface, " +
				"http://user:password@host:8123 or https://…")
		}
		e.dsn = u
	} else {
		u, err := shared.acquire()
		if err != nil {
			return nil, err
		}
		e.dsn, e.local = u, true
	}
	name := "traceflake_" + strings.ToLower(rand.Text())
	admin := *e.dsn
	admin.Path = ""
	if _, err := post(ctx, &admin, "CREATE DATABASE "+name); err != nil {
		if e.local {
			err = errors.Join(err, shared.release())
		}
		return nil, err
	}
	own := *e.dsn
	own.Path = "/" + name
	e.dsn = &own
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
	e.closed.Do(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		_, e.err = post(ctx, e.dsn, "DROP DATABASE "+e.Database()+" SYNC")
		if e.local {
			e.err = errors.Join(e.err, shared.release())
		}
	})
	return e.err
}

// shared is the one engine that libchdb allows in a process.
var shared process

type process struct {
	mu     sync.Mutex
	users  int
	dsn    *url.URL
	server *http.Server
	engine *connection // which holds it open
	dir    string
}

func (p *process) acquire() (*url.URL, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.users == 0 {
		if err := p.start(); err != nil {
			return nil, errors.Join(err, p.stop())
		}
	}
	p.users++
	return p.dsn, nil
}

func (p *process) release() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.users--; p.users > 0 {
		return nil
	}
	return p.stop()
}

func (p *process) start() error {
	lib, err := loadChdb()
	if err != nil {
		return err
	}
	if p.dir, err = os.MkdirTemp("", "traceflake-chdb-"); err != nil {
		return err
	}
	if p.engine, err = lib.open(p.dir); err != nil {
		return err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("servers: ClickHouse gateway: %w", err)
	}
	password := rand.Text()
	p.dsn = &url.URL{Scheme: "http", User: url.UserPassword("default", password), Host: listener.Addr().String()}
	p.server = &http.Server{Handler: &gateway{password, lib, p.dir}, ReadHeaderTimeout: time.Minute}
	go func() { _ = p.server.Serve(listener) }() // ends with Shutdown
	return nil
}

// stop undoes start, even if that failed halfway.
func (p *process) stop() error {
	var err error
	if p.server != nil {
		err = p.server.Shutdown(context.Background())
		p.server = nil
	}
	if p.engine != nil {
		p.engine.close()
		p.engine = nil
	}
	return errors.Join(err, os.RemoveAll(p.dir))
}
