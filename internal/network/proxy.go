package network

import (
	"bytes"
	"net"
	"sync"
	"testing"
	"time"
)

// Proxy is a bad network between the clients of a store and its server, for any protocol over TCP.
// A message is what is sent at once.
type Proxy struct {
	Bad // while it loses messages
	// Change, if not nil, changes messages from the server to clients. Set it before they connect.
	Change func([]byte) []byte

	server   string
	listener net.Listener
	mu       sync.Mutex
	cut      bool
	loses    bool
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
// drops packets.
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

// Lose lets the [Bad] delay, lose and repeat messages to the server until Mend. A client's
// connection is closed when a message or its answer is lost, and before a message is repeated.
func (p *Proxy) Lose() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.loses = true
}

// Mend ends what Cut, Stall, Hold and Lose began.
func (p *Proxy) Mend() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, stopped := range []*chan struct{}{&p.stalled, &p.held} {
		if *stopped != nil {
			close(*stopped)
			*stopped = nil
		}
	}
	p.cut, p.loses = false, false
}

func (p *Proxy) connect(client net.Conn) {
	defer func() { _ = client.Close() }()
	server, err := net.Dial("tcp", p.server)
	if err != nil {
		return
	}
	p.mu.Lock()
	p.conns = append(p.conns, client, server)
	if p.cut {
		_ = client.Close()
	}
	p.mu.Unlock()
	go func() {
		p.pass(server, &p.held, func(message []byte, _ bool) error {
			if p.Change != nil {
				message = p.Change(message)
			}
			_, err := client.Write(message)
			return err
		})
		_ = client.Close()
	}()
	lost := p.pass(client, &p.stalled, func(message []byte, loses bool) error {
		deliver := func(answered bool) error {
			if !answered {
				_ = client.Close()
			}
			_, err := server.Write(message)
			return err
		}
		if !loses {
			return deliver(true)
		}
		return p.Send(deliver, func() { _ = deliver(false) })
	})
	if lost { // messages may be on their way
		time.Sleep(longest + time.Second)
	}
	_ = server.Close()
}

// pass calls deliver for each message, but not while its way is stopped, until one fails or the
// connection ends. It reports whether the network lost messages meanwhile.
func (p *Proxy) pass(from net.Conn, way *chan struct{},
	deliver func(message []byte, loses bool) error) (lost bool) {
	buffer := make([]byte, 64<<10)
	for {
		n, err := from.Read(buffer)
		p.mu.Lock()
		stopped, loses := []chan struct{}{p.stalled, *way}, p.loses
		p.mu.Unlock()
		lost = lost || loses && n > 0
		for _, s := range stopped {
			if s != nil {
				<-s
			}
		}
		if n > 0 && deliver(bytes.Clone(buffer[:n]), loses) != nil || err != nil {
			return lost
		}
	}
}
