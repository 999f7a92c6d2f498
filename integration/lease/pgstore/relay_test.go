package pgstore

import (
	"net"
	"net/url"
	"sync/atomic"
	"testing"
)

// relay passes bytes between clients and a server.
type relay struct {
	dsn    string      // of the server through the relay
	silent atomic.Bool // from then on, nothing arrives, and no connection ends
}

// newRelay returns a relay that changes what the server sends.
func newRelay(t *testing.T, dsn string, change func([]byte) []byte) *relay {
	t.Helper()
	u, err := url.Parse(dsn)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	host := u.Host
	u.Host = l.Addr().String()
	r := &relay{dsn: u.String()}
	go func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			server, err := net.Dial("tcp", host)
			if err != nil {
				_ = client.Close()
				continue
			}
			go r.pass(server, client, unchanged)
			go r.pass(client, server, change)
		}
	}()
	return r
}

func unchanged(b []byte) []byte { return b }

func (r *relay) pass(to, from net.Conn, change func([]byte) []byte) {
	buf := make([]byte, 1<<16)
	for {
		n, err := from.Read(buf)
		if r.silent.Load() {
			return
		}
		if n > 0 {
			_, _ = to.Write(change(buf[:n]))
		}
		if err != nil {
			_, _ = to.Close(), from.Close()
			return
		}
	}
}
