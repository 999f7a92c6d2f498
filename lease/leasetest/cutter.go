package leasetest

import (
	"bytes"
	"net"
	"sync"
	"testing"
	"time"
)

// Cutter is a bad network between the clients of a store and its server: a proxy for any protocol
// over TCP. A message is what is sent at once.
type Cutter struct {
	BadNetwork // while it loses messages
	server     string
	listener   net.Listener

	mu     sync.Mutex
	cut    bool
	loses  bool
	flows  chan struct{} // closed unless the network is stalled
	change func([]byte) []byte
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

// Lose has the [BadNetwork] delay, lose and repeat messages to the server until Mend. The connection of
// a client ends when a message or its answer is lost, and before a message is repeated.
func (c *Cutter) Lose() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.loses = true
}

// Mend ends what Cut, Stall and Lose began.
func (c *Cutter) Mend() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.cut, c.loses = false, false
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

// keep has Cut end a connection, too, until it is released.
func (c *Cutter) keep(conn net.Conn) (release func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.cut {
		_ = conn.Close()
	}
	c.conns[conn] = true
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.conns, conn)
	}
}

func (c *Cutter) connect(client net.Conn) {
	defer c.keep(client)()
	defer func() { _ = client.Close() }()
	server, err := net.Dial("tcp", c.server)
	if err != nil {
		return
	}
	defer c.keep(server)()
	c.mu.Lock()
	change := c.change
	c.mu.Unlock()
	go func() {
		defer func() { _ = client.Close() }()
		c.pass(server, func(message []byte) error {
			if change != nil {
				message = change(message)
			}
			_, err := client.Write(message)
			return err
		})
	}()
	lossy := false
	c.pass(client, func(message []byte) error {
		c.mu.Lock()
		loses := c.loses
		c.mu.Unlock()
		if !loses {
			_, err := server.Write(message)
			return err
		}
		lossy = true
		message = bytes.Clone(message)
		deliver := func(answered bool) error {
			if !answered {
				_ = client.Close()
			}
			_, err := server.Write(message)
			return err
		}
		return c.Send(deliver, func() { _ = deliver(false) })
	})
	if lossy { // messages may be on their way
		time.AfterFunc(longest+time.Second, func() { _ = server.Close() })
	} else {
		_ = server.Close()
	}
}

// pass has deliver deliver messages, until one is not delivered or the connection ends.
func (c *Cutter) pass(from net.Conn, deliver func([]byte) error) {
	buf := make([]byte, 64<<10)
	for {
		n, err := from.Read(buf)
		c.mu.Lock()
		flows := c.flows
		c.mu.Unlock()
		<-flows
		if n > 0 && deliver(buf[:n]) != nil || err != nil {
			return
		}
	}
}
