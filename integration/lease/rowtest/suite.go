// Package rowtest checks that a store follows the rule of [driver.Block]: in random calls, good and
// bad, by several clients in turn, and in calls of many clients at once, whose history must be
// linearizable (github.com/anishathalye/porcupine). [Faults] checks such a history of calls while a
// server fails. Its own tests prove that it detects wrong stores.
package rowtest

import (
	"context"
	"testing"
	"time"

	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/driver"
	"github.com/traceflake/traceflake/randflake"
)

// Storage is a place for one store: a table, a prefix of keys, a file.
type Storage struct {
	// Open returns a new client of the storage. It makes no request.
	Open func() (driver.Store, error)
	// Delete, if it is not nil, deletes all that the store keeps, as an operator may do by mistake.
	Delete func() error
}

// Client returns a new client of the storage until tb ends.
func (s Storage) Client(tb testing.TB) driver.Store {
	tb.Helper()
	client, err := s.Open()
	if err != nil {
		tb.Fatalf("open: %v", err)
	}
	tb.Cleanup(func() {
		if err := client.Close(context.Background()); err != nil {
			tb.Errorf("close: %v", err)
		}
	})
	return client
}

// Create creates the store that d describes, and returns its description. Fields that d leaves
// empty are set as by [driver.NewDescription].
func (s Storage) Create(tb testing.TB, d lease.Description) lease.Description {
	tb.Helper()
	d = filled(tb, d)
	if err := s.Client(tb).Create(context.Background(), d); err != nil {
		tb.Fatalf("create: %v", err)
	}
	return d
}

func filled(tb testing.TB, d lease.Description) lease.Description {
	tb.Helper()
	if d.Created.IsZero() {
		d.Created = time.Now()
	}
	d, err := driver.NewDescription(d)
	if err != nil {
		tb.Fatal(err)
	}
	return d
}

// Nodes describes a store that grants r, for at most [lease.MaxTTL].
func Nodes(r driver.NodeRange) lease.Description {
	return lease.Description{First: r.First, Nodes: r.Nodes, BlockSize: r.BlockSize, LongestTTL: lease.MaxTTL}
}

// Harness opens the stores under test.
type Harness struct {
	// New returns an empty storage that lasts until tb ends: the suite creates the store in it. It is
	// called some twenty times.
	New func(tb testing.TB) Storage
	// KnowsTime is set for stores that have a clock and refuse clients that are ahead of it. The
	// clock must be within seconds of time.Now.
	KnowsTime bool
}

// Run runs the suite.
func Run(t *testing.T, h Harness) {
	for _, c := range checks {
		t.Run(c.name, func(t *testing.T) { c.run(t, h) })
	}
}

var checks = []struct {
	name string
	run  func(tb testing.TB, h Harness)
}{
	{"create", create},
	{"bad descriptions", badDescriptions},
	{"no store", noStore},
	{"replaced store", replaced},
	{"secrets", secrets},
	{"calls", calls},
	{"raise again", raiseAgain},
	{"cancelled context", cancelled},
	{"close", closed},
	{"every block at once", everyBlockAtOnce},
	{"linearizable", linearizable},
}

// few describes a store of four blocks, which are soon used up.
var few = Nodes(driver.NodeRange{Nodes: randflake.MaxNode + 1, BlockSize: (randflake.MaxNode + 1) / 4})

// start returns the time of the first request of a check: long enough ago that later times are not
// ahead of a store's clock.
func start() time.Time { return time.Now().Add(-6 * time.Hour).UTC().Truncate(time.Second) }

// open returns a caller of a new store.
func (h Harness) open(tb testing.TB, d lease.Description) *caller {
	tb.Helper()
	return h.caller(tb, d, h.clients(tb, d, 3)...)
}

// clients returns n clients of a new store.
func (h Harness) clients(tb testing.TB, d lease.Description, n int) []driver.Store {
	tb.Helper()
	storage := h.New(tb)
	storage.Create(tb, d)
	clients := make([]driver.Store, n)
	for i := range clients {
		clients[i] = storage.Client(tb)
	}
	return clients
}

func request(now time.Time, ttl time.Duration) lease.Request {
	return lease.Request{Nonce: lease.NewNonce(), Now: now, TTL: ttl}
}
