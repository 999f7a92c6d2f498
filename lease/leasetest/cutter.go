package leasetest

import (
	"io"
	"math/rand/v2"
	"net"
	"sync"
	"testing"
	"time"
)

// Cutter is a bad network between the clients of a store and its server: a proxy for any protocol
// over TCP.
type Cutter struct {
	server   string
	listener net.Listener

	mu     sync.Mutex
	cut    bool
	flaky  bool
	flows  chan struct{} // closed unless the network is stalled
	change func([]byte) []byte
	serve  func(client, server net.Conn)
	conns  map[net.Conn]bool
}

// NewCutter returns a proxy, until tb ends, for the server at an address.
func NewCutter(tb testing.TB, server string) *Cutter {
	tb.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	c := &Cutter{server: server, listener: l, flows: make(chan struct{}), conns: map[net.Conn]bool{}}
	c.serve = c.passBoth
	close(c.flows)
	tb.Cleanup(func() {
		_ = l.Close()
		c.Mend()
		c.Cut()
	})
	go func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			go c.connect(client)
		}
	}()
	return c
}

// Address returns host:port of the server through the proxy.
func (c *Cutter) Address() string { return c.listener.Addr().String() }

// Cut ends all connections, and accepts none until Mend.
func (c *Cutter) Cut() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.cut = true
	for conn := range c.conns {
		_ = conn.Close()
	}
}

// Stall delivers nothing until Mend, as a server that hangs or a network that drops packets.
func (c *Cutter) Stall() {
	c.mu.Lock()
	defer c.mu.Unlock()
	select {
	case <-c.flows:
		c.flows = make(chan struct{})
	default:
	}
}

// Lose loses and delays messages until Mend. Of every twelve messages to the server, the connection
// is cut before one, after another one, whose answer is then lost, and one is late.
func (c *Cutter) Lose() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.flaky = true
}

// Mend ends what Cut, Stall and Lose began.
func (c *Cutter) Mend() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.cut, c.flaky = false, false
	select {
	case <-c.flows:
	default:
		close(c.flows)
	}
}

// Change has f change what the server sends on later connections.
func (c *Cutter) Change(f func([]byte) []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.change = f
}

// Serve has f pass on what is sent on later connections, which end when it returns: for a protocol
// of which it knows the messages. Then only Cut and Mend have an effect.
func (c *Cutter) Serve(f func(client, server net.Conn)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.serve = f
}

func (c *Cutter) keep(conn net.Conn) (release func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.cut {
		_ = conn.Close()
	}
	c.conns[conn] = true
	return func() {
		_ = conn.Close()
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.conns, conn)
	}
}

func (c *Cutter) connect(client net.Conn) {
	defer c.keep(client)()
	server, err := net.Dial("tcp", c.server)
	if err != nil {
		return
	}
	defer c.keep(server)()
	c.mu.Lock()
	serve := c.serve
	c.mu.Unlock()
	serve(client, server)
}

func (c *Cutter) passBoth(client, server net.Conn) {
	c.mu.Lock()
	change := c.change
	c.mu.Unlock()
	go func() {
		defer func() { _ = client.Close() }()
		c.pass(client, server, func() (cut, after bool) { return false, false }, change)
	}()
	c.pass(server, client, c.fate, nil)
}

// fate decides what happens to a message: the connection is cut, before or after it.
func (c *Cutter) fate() (cut, after bool) {
	c.mu.Lock()
	flaky := c.flaky
	c.mu.Unlock()
	if !flaky {
		return false, false
	}
	switch rand.IntN(12) {
	case 0:
		return true, false
	case 1:
		return true, true
	case 2:
		time.Sleep(rand.N(300 * time.Millisecond))
	}
	return false, false
}

// pass passes messages on.
func (c *Cutter) pass(to io.Writer, from net.Conn, fate func() (cut, after bool), change func([]byte) []byte) {
	buf := make([]byte, 64<<10)
	for {
		n, err := from.Read(buf)
		c.mu.Lock()
		flows := c.flows
		c.mu.Unlock()
		<-flows
		cut, after := fate()
		if n > 0 && (!cut || after) {
			if cut {
				_ = from.Close()
			}
			message := buf[:n]
			if change != nil {
				message = change(message)
			}
			if _, err := to.Write(message); err != nil {
				return
			}
		}
		if cut && after {
			time.Sleep(10 * time.Millisecond) // in which the server reads it
		}
		if cut || err != nil {
			return
		}
	}
}
