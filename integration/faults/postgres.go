package faults

import (
	"bufio"
	"context"
	"encoding/binary"
	"io"
	"net"
	"net/url"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/traceflake/traceflake/lease/leasetest"
)

// PostgresProxy is a proxy for a PostgreSQL server.
type PostgresProxy struct {
	*leasetest.Cutter
	Counts
	dsn   string // of the server
	front string // the DSN through the proxy
}

// Postgres returns a proxy for the server of a DSN, without TLS.
func Postgres(tb testing.TB, dsn string) *PostgresProxy {
	tb.Helper()
	u, err := url.Parse(dsn)
	if err != nil {
		tb.Fatal(err)
	}
	p := &PostgresProxy{dsn: dsn, Cutter: leasetest.NewCutter(tb, u.Host)}
	p.Serve(p.serve)
	u.Host = p.Address()
	p.front = u.String()
	return p
}

// DSN is that of the server through the proxy.
func (p *PostgresProxy) DSN() string { return p.front }

func (p *PostgresProxy) serve(client, server net.Conn) {
	var mute atomic.Bool
	go func() {
		defer func() { _ = client.Close() }()
		buf := make([]byte, 1<<14)
		for {
			n, err := server.Read(buf)
			if n > 0 && !mute.Load() {
				_, _ = client.Write(buf[:n])
			}
			if err != nil {
				return
			}
		}
	}()
	from := bufio.NewReader(client)
	if startup, err := message(from, 0); err != nil || forward(server, startup) != nil {
		return
	}
	var batch []byte
	for {
		m, err := message(from, 1)
		if err != nil {
			return
		}
		batch = append(batch, m...)
		switch m[0] {
		case 'S': // the end of a call
		case 'p', 'Q', 'X': // a password, a part of an operator's transaction, the end
			if forward(server, batch) != nil {
				return
			}
			batch = nil
			continue
		default:
			continue
		}
		f := p.draw()
		switch f {
		case slow:
			time.Sleep(moment())
		case requestLost:
			return
		case answerLost:
			mute.Store(true)
		case late:
			go p.replay(batch)
			return
		case doubled:
			go p.replay(batch)
		}
		if forward(server, batch) != nil {
			return
		}
		if f == answerLost {
			time.Sleep(moment()) // which the server may take to commit
			return
		}
		batch = nil
	}
}

// message reads one message: bytes of type, four of length, the rest.
func message(r *bufio.Reader, typed int) ([]byte, error) {
	head, err := r.Peek(typed + 4)
	if err != nil {
		return nil, err
	}
	m := make([]byte, typed+int(binary.BigEndian.Uint32(head[typed:])))
	_, err = io.ReadFull(r, m)
	return m, err
}

func forward(w io.Writer, b []byte) error {
	_, err := w.Write(b)
	return err
}

// replay delivers a call on a new connection. If the server is down by then, the
// call is lost.
func (p *PostgresProxy) replay(batch []byte) {
	time.Sleep(while())
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	conn, err := pgconn.Connect(ctx, p.dsn)
	if err != nil {
		return
	}
	raw, err := conn.Hijack()
	if err != nil {
		_ = conn.Close(ctx)
		return
	}
	defer func() { _ = raw.Conn.Close() }()
	_ = raw.Conn.SetDeadline(time.Now().Add(5 * time.Second))
	if forward(raw.Conn, batch) != nil {
		return
	}
	for from := bufio.NewReader(raw.Conn); ; {
		if m, err := message(from, 1); err != nil || m[0] == 'Z' {
			return // ready for another: it was carried out, or refused
		}
	}
}
