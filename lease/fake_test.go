package lease_test

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"go.opentelemetry.io/otel/metric/noop"

	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/driver"
	"github.com/traceflake/traceflake/lease/memstore"
	"github.com/traceflake/traceflake/lease/stores"
	"github.com/traceflake/traceflake/randflake"
)

// fakeClock is moved by hand: both clocks by Add, only the wall clock by Step.
type fakeClock struct {
	mu      sync.Mutex // a timer of Nodes may read the clock, even after the test
	wall    time.Time
	elapsed time.Duration
}

var testStart = time.Date(2026, 5, 4, 3, 2, 1, 0, time.UTC)

func (c *fakeClock) read() (wall time.Time, elapsed time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.wall, c.elapsed
}

func (c *fakeClock) Now() time.Time {
	now, _ := c.read()
	return now
}

func (c *fakeClock) Step(d time.Duration) { c.move(d, 0) }
func (c *fakeClock) Add(d time.Duration)  { c.move(d, d) }

func (c *fakeClock) move(wall, elapsed time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.wall, c.elapsed = c.wall.Add(wall), c.elapsed+elapsed
}

// fakeStore is a store behind a connection that can break.
type fakeStore struct {
	lease.Store
	on    func(*call) // answers a call; if it is nil, the store does
	calls []*call
}

// call is a call of a store, and its result.
type call struct {
	ctx   context.Context
	op    string      // describe, acquire, renew, get or begin
	nonce string      // of what it writes
	grant lease.Grant // that it is about, and then its result
	err   error
	send  func() // lets the store answer

	leaves, reason string // of a begin
}

var errAway = errors.New("the store is unreachable")

// fails returns the connection to a store that does not answer.
func fails(err error) func(*call) { return func(c *call) { c.err = err } }

// loses is a connection that loses the responses to writes.
func loses(c *call) {
	if c.send(); c.nonce != "" {
		c.err = errAway
	}
}

// asked returns the calls of one kind.
func (s *fakeStore) asked(op string) (asked []*call) {
	for _, c := range s.calls {
		if c.op == op {
			asked = append(asked, c)
		}
	}
	return asked
}

func (s *fakeStore) call(c *call, send func()) {
	s.calls = append(s.calls, c)
	if c.send = send; s.on == nil {
		send()
	} else {
		s.on(c)
	}
}

func (s *fakeStore) Describe(ctx context.Context) (d lease.Description, err error) {
	c := &call{ctx: ctx, op: "describe"}
	s.call(c, func() { d, c.err = s.Store.Describe(ctx) })
	return d, c.err
}

func (s *fakeStore) Acquire(ctx context.Context, r lease.Request) (lease.Grant, error) {
	c := &call{ctx: ctx, op: "acquire", nonce: r.Nonce}
	s.call(c, func() { c.grant, c.err = s.Store.Acquire(ctx, r) })
	return c.grant, c.err
}

func (s *fakeStore) Renew(ctx context.Context, g lease.Grant,
	r lease.Request) (lease.Grant, error) {
	c := &call{ctx: ctx, op: "renew", nonce: r.Nonce, grant: g}
	s.call(c, func() { c.grant, c.err = s.Store.Renew(ctx, g, r) })
	return c.grant, c.err
}

func (s *fakeStore) Begin(ctx context.Context, r lease.BeginRequest) (d lease.Description,
	err error) {
	c := &call{ctx: ctx, op: "begin", leaves: r.Leaves, reason: r.Reason}
	s.call(c, func() { d, c.err = s.Store.Begin(ctx, r) })
	return d, c.err
}

func (s *fakeStore) Get(ctx context.Context, g lease.Grant) (lease.Grant, error) {
	c := &call{ctx: ctx, op: "get", grant: g}
	s.call(c, func() { c.grant, c.err = s.Store.Get(ctx, g) })
	return c.grant, c.err
}

// bench is a Keeper without a goroutine: the test takes its steps.
type bench struct {
	*lease.Loop
	t       *testing.T
	clock   *fakeClock
	objects *memstore.Objects
	memory  stores.Store // on these objects
	store   *fakeStore   // the connection to it
	machine uint64       // changes when the machine is restored from a snapshot
	reports []error
	secrets *randflake.Keyring // of the secret file; nil: it cannot be read
	reading func()             // runs while it is read, if not nil
}

var (
	testCodec   = must(randflake.NewCodec([]byte("0123456789abcdef")))
	testKeyring = randflake.NewKeyring(testCodec)
	testSecrets = lease.FixedSecrets(testKeyring)
)

// few is a range of four blocks of one node.
var few = lease.Description{Nodes: 4, BlockSize: 1}

// newBench returns a Keeper with leases of 10 s, which holds none yet.
func newBench(t *testing.T, opts ...lease.Option) *bench {
	t.Helper()
	objects := new(memstore.Objects)
	b := newBenchOn(t, must(newMemory(t, objects, few)), opts...)
	b.objects = objects
	return b
}

// newMemory creates a store of objects.
func newMemory(t *testing.T, o *memstore.Objects, d lease.Description) (stores.Store, error) {
	s := must(stores.New(o, driver.Layout{Name: "memory", BlocksPerPage: 64}))
	secret := testCodec
	if d.Keyless {
		secret = nil
	}
	d.LongestTTL = lease.MaxTTL
	o.Clock = func() time.Time { return testStart } // for the beginning of the first history
	_, err := s.Create(t.Context(), d, secret)
	o.Clock = nil
	return s, err
}

// newBenchOn returns a Keeper of a store.
func newBenchOn(t *testing.T, memory stores.Store, opts ...lease.Option) *bench {
	t.Helper()
	b := &bench{t: t, machine: 7, secrets: testKeyring, memory: memory,
		// the monotonic clock may count from any moment
		clock: &fakeClock{wall: testStart, elapsed: -time.Hour}}
	b.store = &fakeStore{Store: b.memory}
	opts = append([]lease.Option{
		lease.WithClock(b.clock.read), lease.WithTTL(10 * time.Second),
		lease.WithMeterProvider(noop.NewMeterProvider()),
		lease.WithErrorHandler(func(err error) { b.reports = append(b.reports, err) }),
		lease.WithMachine(func() uint64 { return b.machine }),
	}, opts...)
	secrets := func(context.Context) (*randflake.Keyring, error) {
		if b.secrets == nil {
			return nil, errAway
		}
		if b.reading != nil {
			b.reading()
		}
		return b.secrets, nil
	}
	if must(memory.Describe(t.Context())).Keyless {
		secrets = nil
	}
	b.Loop = must(lease.NewLoop(b.store, secrets, opts...))
	b.SetJitter(func() float64 { return 0.5 })
	b.ReportAtOnce()
	t.Cleanup(func() { b.Seal() }) // ends a timer of Nodes, for which the clock stands still
	return b
}

// newHeld returns a Keeper that holds a lease of the first block.
func newHeld(t *testing.T, opts ...lease.Option) *bench {
	t.Helper()
	b := newBench(t, opts...)
	b.pass(0)
	return b
}

// during calls f at the beginning of each call of one kind.
func (b *bench) during(op string, f func()) {
	b.store.on = func(c *call) {
		if c.op == op {
			f()
		}
		c.send()
	}
}

// pass lets d pass and takes the steps that are due.
func (b *bench) pass(d time.Duration) {
	b.t.Helper()
	for end := b.clock.elapsed + d; ; {
		wait := b.Step(b.t.Context())
		left := end - b.clock.elapsed
		if wait >= left {
			b.clock.Add(left)
			b.Step(b.t.Context())
			return
		}
		b.clock.Add(max(wait, time.Millisecond))
	}
}

// next takes a step and lets the time pass until the next one is due.
func (b *bench) next() {
	b.t.Helper()
	b.clock.Add(b.Step(b.t.Context()))
}

// mustOne generates an ID.
func (b *bench) mustOne() randflake.Parts {
	b.t.Helper()
	id, err := b.Next()
	if err != nil {
		b.t.Fatal(err)
	}
	return b.Codec().Decode(id)
}

// second generates as many IDs as a block of one node has in a second.
func (b *bench) second() []randflake.ID {
	ids := make([]randflake.ID, 1<<17)
	n, _, _ := b.Fill(ids)
	return ids[:n]
}

func (b *bench) wantNode(want uint32) {
	b.t.Helper()
	if p := b.mustOne(); p.Node != want {
		b.t.Errorf("made an ID of node %d, want %d", p.Node, want)
	}
}

func (b *bench) wantError(want error) {
	b.t.Helper()
	if id, err := b.Next(); !errors.Is(err, want) {
		b.t.Fatalf("got %v, %v; want %v", id, err, want)
	}
}

// wantDrops checks why grants were dropped, each for a reason of its own.
func (b *bench) wantDrops(reasons ...string) {
	b.t.Helper()
	want := map[string]int64{}
	for _, reason := range reasons {
		want[reason] = 1
	}
	if got := b.Drops(); !maps.Equal(got, want) || b.Generation() != uint64(len(want)) {
		b.t.Errorf("dropped %v, generation %d; want %v", got, b.Generation(), want)
	}
}

func (b *bench) wantReports(want ...error) {
	b.t.Helper()
	if !slices.EqualFunc(b.reports, want, errors.Is) {
		b.t.Errorf("reported %v, want %v", b.reports, want)
	}
}

// block returns the store's state of a block.
func (b *bench) block(node uint32) lease.Grant {
	d := must(b.memory.Describe(b.t.Context()))
	g := lease.Grant{Store: d.ID, Lease: randflake.Lease{Node: node}}
	return must(b.memory.Get(b.t.Context(), g))
}

// wantBlock checks that the store's state of a block is still what it was.
func (b *bench) wantBlock(was lease.Grant) {
	b.t.Helper()
	if now := b.block(was.Node); now != was {
		b.t.Errorf("the block was changed to %+v, it was %+v", now, was)
	}
}
