package pagestest

import (
	"net"
	"sync"
	"testing"
)

// Proxy is between clients and a server that speaks any protocol over TCP. Its Stall is one for
// [Storage].
type Proxy struct {
	listener net.Listener
	server   string

	mu   sync.Mutex
	open chan struct{} // closed unless it is stalled
}

// NewProxy returns a proxy for the server at an address, until tb ends.
func NewProxy(tb testing.TB, server string) *Proxy {
	tb.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	p := &Proxy{listener: l, server: server, open: make(chan struct{})}
	close(p.open)
	tb.Cleanup(func() { _ = l.Close() })
	go func() {
		for client, err := l.Accept(); err == nil; client, err = l.Accept() {
			go p.connect(client)
		}
	}()
	return p
}

// Address returns host:port of the proxy.
func (p *Proxy) Address() string { return p.listener.Addr().String() }

// Stall holds back what either side sends until resume is called.
func (p *Proxy) Stall() (resume func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	open := make(chan struct{})
	p.open = open
	return func() { close(open) }
}

func (p *Proxy) connect(client net.Conn) {
	defer func() { _ = client.Close() }()
	server, err := net.Dial("tcp", p.server)
	if err != nil {
		return
	}
	defer func() { _ = server.Close() }()
	go p.pass(client, server)
	p.pass(server, client)
}

// pass carries bytes until a connection ends, and ends the other one.
func (p *Proxy) pass(from, to net.Conn) {
	defer func() { _ = to.Close() }()
	buffer := make([]byte, 64<<10)
	for {
		n, err := from.Read(buffer)
		p.mu.Lock()
		open := p.open
		p.mu.Unlock()
		<-open
		if _, failed := to.Write(buffer[:n]); err != nil || failed != nil {
			return
		}
	}
}
