// Package leasetest is the conformance suite for stores of leases: authors of a
// [lease.Store] run [Run] against it, and [Processes] against real processes.
//
// The suite checks a store against the rule of [driver.Block]: in single calls, in random
// sequences of calls (a state machine of pgregory.net/rapid), and in calls of many clients at
// once, whose history must be linearizable (github.com/anishathalye/porcupine). A [History]
// records the calls of any other test, for instance one that breaks connections, and checks them
// with the same model.
//
// Its own tests prove that it detects wrong stores.
package leasetest

import (
	"testing"
	"time"

	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/driver"
	"github.com/traceflake/traceflake/randflake"
)

// Open returns a new client of one storage. A store may also return an error from its first call
// instead of from Open.
type Open func(nodes driver.NodeRange) (lease.Store, error)

// Harness opens the stores under test.
type Harness struct {
	// New makes an empty storage that lasts until tb ends, and returns a function that opens it.
	// It is called more than a hundred times.
	New func(tb testing.TB) Open
	// KnowsTime is set for stores that have a clock and refuse clients that are ahead of it. The
	// clock must be within seconds of time.Now.
	KnowsTime bool
	// Volatile is set for stores that live in memory: all calls of one Open
	// return the same client, with the same nodes.
	Volatile bool
}

// Run runs the suite.
func Run(t *testing.T, h Harness) {
	for _, c := range h.checks() {
		t.Run(c.name, func(t *testing.T) { c.run(t, h) })
	}
}

type check struct {
	name string
	run  func(tb testing.TB, h Harness)
}

func (h Harness) checks() []check {
	list := []check{
		{"acquire", acquire},
		{"acquire until none is free", acquireAll},
		{"renew", renew},
		{"release", release},
		{"get", get},
		{"raise", raise},
		{"bad requests", badRequests},
		{"end of life", endOfLife},
		{"clock ahead", clockAhead},
		{"cancelled context", cancelled},
		{"every block at once", everyBlockAtOnce},
		{"state machine", stateMachine},
		{"linearizable", linearizable},
	}
	if !h.Volatile {
		list = append(list,
			check{"block size", blockSize},
			check{"ranges of nodes", ranges},
			check{"several clients", severalClients},
			check{"first use at once", firstUseAtOnce},
		)
	}
	return list
}

// few is a range of four blocks, which are soon used up.
var few = driver.NodeRange{First: 0, Nodes: randflake.MaxNode + 1, BlockSize: (randflake.MaxNode + 1) / 4}

// start returns the time of the first request of a check: long enough ago that later times are not
// ahead of a store's clock.
func start() time.Time { return time.Now().Add(-6 * time.Hour).UTC().Truncate(time.Second) }

// open returns a caller of a new storage.
func (h Harness) open(tb testing.TB, nodes driver.NodeRange) *caller {
	tb.Helper()
	return h.caller(tb, mustOpen(tb, h.New(tb), nodes), nodes)
}

func mustOpen(tb testing.TB, open Open, nodes driver.NodeRange) lease.Store {
	tb.Helper()
	s, err := open(nodes)
	if err != nil {
		tb.Fatalf("open: %v", err)
	}
	return s
}

func request(now time.Time, ttl time.Duration) lease.Request {
	return lease.Request{Nonce: lease.NewNonce(), Now: now, TTL: ttl}
}

// equal reports whether two grants are equal, with times compared as instants.
func equal(a, b lease.Grant) bool {
	return a.Node == b.Node && a.Nodes == b.Nodes && a.Start.Equal(b.Start) && a.End.Equal(b.End) &&
		a.Nonce == b.Nonce && a.Version == b.Version && a.Owner == b.Owner
}

// renewal returns the request that moves a grant's end to end.
func renewal(nonce string, end time.Time) lease.Request {
	return lease.Request{Nonce: nonce, Now: end.Add(-lease.MaxTTL), TTL: lease.MaxTTL}
}
