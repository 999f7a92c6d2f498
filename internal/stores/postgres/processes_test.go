//go:build unix

package postgres

import (
	"context"
	"io"
	"net"
	"net/url"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/traceflake/traceflake/internal/embedded"
	"github.com/traceflake/traceflake/randflake/lease/leasetest"
)

// Processes reach the server through a gate. While it is shut the server
// crashes, and forgets each commit that did not wait for the disk: as is the
// default in this database.
func TestProcesses(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	server := embedded.PostgresForTest(t)
	pool := connect(t, server.DSN())
	execute(t, pool, "ALTER DATABASE "+value[string](t, pool, "SELECT quote_ident(current_database())")+" SET synchronous_commit = off")
	u, err := url.Parse(server.DSN())
	if err != nil {
		t.Fatal(err)
	}
	g := newGate(t, u.Host)
	u.Host = g.Addr().String()
	leasetest.Processes{
		URL: u.String(),
		Outage: func(during func()) error {
			g.shut()
			defer g.open()
			if ownServer {
				if err := crash(server.DSN()); err != nil {
					return err
				}
			}
			during()
			return answers(server.DSN())
		},
	}.Run(t)
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

func answers(dsn string) error {
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		conn, err := pgx.Connect(context.Background(), dsn)
		if err == nil {
			return conn.Close(context.Background())
		}
		if time.Now().After(deadline) {
			return err
		}
	}
}

// gate forwards connections to an address, unless it is shut.
type gate struct {
	net.Listener
	to string

	mu     sync.Mutex
	closed bool
	conns  []net.Conn
}

func newGate(t *testing.T, to string) *gate {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	g := &gate{Listener: l, to: to}
	t.Cleanup(func() {
		_ = l.Close()
		g.shut()
	})
	go func() {
		for {
			in, err := l.Accept()
			if err != nil {
				return
			}
			go g.forward(in)
		}
	}()
	return g
}

func (g *gate) forward(in net.Conn) {
	out, err := net.Dial("tcp", g.to)
	if err != nil {
		_ = in.Close()
		return
	}
	g.mu.Lock()
	g.conns = append(g.conns, in, out)
	if g.closed {
		_, _ = in.Close(), out.Close()
	}
	g.mu.Unlock()
	go func() {
		_, _ = io.Copy(out, in)
		_ = out.Close()
	}()
	_, _ = io.Copy(in, out)
	_ = in.Close()
}

func (g *gate) shut() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.closed = true
	for _, c := range g.conns {
		_ = c.Close()
	}
	g.conns = nil
}

func (g *gate) open() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.closed = false
}
