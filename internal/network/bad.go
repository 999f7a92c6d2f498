// Package network is a bad network for tests of stores: [Proxy] is one in front of any TCP server,
// and [Bad] decides what happens to a message.
package network

import (
	"cmp"
	"errors"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"
)

// Bad decides what happens to the messages of clients, for a proxy: most are delivered and
// answered at once. It is safe for concurrent use.
type Bad struct {
	// Every is set to n if one in n messages is to be late, lost or repeated; the default is 6.
	Every int64

	sent atomic.Int64
}

// kinds is the number of kinds of faults. They take turns.
const kinds = 5

// errGone is the error of a message whose client gets no answer.
var errGone = errors.New("the connection is gone")

// longest is how long a late message takes at most.
const longest = 5 * time.Second

// Send sends a message once, twice or not at all. If it returns an error, close the client's
// connection.
//
// It tells deliver whether the client gets the answer. It calls again to deliver a message up to
// five seconds later: after the client gave up, after the end of the requested lease, or after the
// client has ended.
func (n *Bad) Send(deliver func(answered bool) error, again func()) error {
	sent, every := n.sent.Add(1), cmp.Or(n.Every, 6)
	if sent%every > 0 {
		return deliver(true)
	}
	switch sent / every % kinds {
	case 0: // delivered after a while, answered
		time.Sleep(rand.N(300 * time.Millisecond))
		return deliver(true)
	case 1: // never delivered
	case 2: // delivered, the client gets no answer
		_ = deliver(false)
	case 3: // the client gives up; delivered long after that
		time.AfterFunc(rand.N(longest), again)
	case 4: // delivered and answered, and delivered again
		time.AfterFunc(rand.N(longest), again)
		return deliver(true)
	}
	return errGone
}

// Check fails tb unless enough messages were sent for each kind of fault.
func (n *Bad) Check(tb testing.TB) {
	tb.Helper()
	if sent := n.sent.Load(); sent < kinds*cmp.Or(n.Every, 6) {
		tb.Errorf("only %d messages were sent: not every kind of fault occurred", sent)
	}
}
