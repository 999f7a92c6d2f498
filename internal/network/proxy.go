// Package network is a bad network for tests of stores: [Proxy] is one in front of any TCP server.
package network

import (
	"net"
	"sync"
	"testing"
)

// Proxy is between the clients of a store and its server.
type Proxy struct {
	// Change, if not nil, changes messages from the server to clients. Set it before they connect.
	Change func([]byte) []byte

	server   string
	listener net.Listener
	mu       sync.Mutex
	cut      bool
	stalled  chan struct{} // nil unless the network is; closed when it is mended
	held     chan struct{} // the same for answers
	conns    []net.Conn
}

// NewProxy returns a proxy, until tb ends, for the server at an address.
func NewProxy(tb testing.TB, server string) *Proxy {
	tb.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	p := &Proxy{server: server, listener: l}
	tb.Cleanup(func() {
		_ = l.Close()
		p.Mend()
		p.Cut()
	})
	go func() {
		for client, err := l.Accept(); err == nil; client, err = l.Accept() {
			go p.connect(client)
		}
	}()
	return p
}

// Address returns host:port of the proxy.
func (p *Proxy) Address() string { return p.listener.Addr().String() }

// Serve passes connections from now on to the server at another address.
func (p *Proxy) Serve(server string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.server = server
}

// Cut closes all connections, and refuses new ones until Mend.
func (p *Proxy) Cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cut = true
	for _, conn := range p.conns {
		_ = conn.Close()
	}
	p.conns = nil
}

// Stall delivers nothing until Mend, which it returns, like a server that hangs or a network that
// drops packets. What clients sent meanwhile is delivered then, also if they are gone.
func (p *Proxy) Stall() (mend func()) { return p.stop(&p.stalled) }

// Hold delivers what clients send, and nothing to them until Mend, which it returns.
func (p *Proxy) Hold() (mend func()) { return p.stop(&p.held) }

func (p *Proxy) stop(what *chan struct{}) (mend func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if *what == nil {
		*what = make(chan struct{})
	}
	return p.Mend
}

// Mend ends what Cut, Stall and Hold began.
func (p *Proxy) Mend() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, stopped := range []*chan struct{}{&p.stalled, &p.held} {
		if *stopped != nil {
			close(*stopped)
			*stopped = nil
		}
	}
	p.cut = false
}

func (p *Proxy) connect(client net.Conn) {
	p.mu.Lock()
	address := p.server
	p.mu.Unlock()
	server, err := net.Dial("tcp", address)
	if err != nil {
		_ = client.Close()
		return
	}
	p.mu.Lock()
	p.conns = append(p.conns, client, server)
	if p.cut {
		_ = client.Close()
	}
	p.mu.Unlock()
	go p.pass(server, client, &p.held, p.Change)
	p.pass(client, server, &p.stalled, nil)
}

// pass delivers messages, but not while their way is stopped, until one fails or the connection
// ends.
func (p *Proxy) pass(from, to net.Conn, way *chan struct{}, change func([]byte) []byte) {
	defer func() { _ = to.Close() }()
	buffer := make([]byte, 64<<10)
	for {
		n, err := from.Read(buffer)
		p.mu.Lock()
		stopped := []chan struct{}{p.stalled, *way}
		p.mu.Unlock()
		for _, s := range stopped {
			if s != nil {
				<-s
			}
		}
		message := buffer[:n]
		if change != nil {
			message = change(message)
		}
		if _, failed := to.Write(message); failed != nil || err != nil {
			return
		}
	}
}
