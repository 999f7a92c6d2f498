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

	"github.com/traceflake/traceflake/internal/calls"
	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/memstore"
	"github.com/traceflake/traceflake/lease/stores"
	"github.com/traceflake/traceflake/randflake"
)

var errAway = errors.New("the store is unreachable")

// fakeClock is moved by hand: both clocks by Add, only the wall clock by Step.
type fakeClock struct {
	mu      sync.Mutex // a timer of Nodes may read the clock, even after the test
	wall    time.Time
	elapsed time.Duration
	drift   float64 // of the wall clock against the monotonic one, per second
	hook    func()  // called at the next reading
}

var testStart = time.Date(2026, 5, 4, 3, 2, 1, 0, time.UTC)

// clockOrigin is the first reading of the monotonic clock, which may count from any moment.
const clockOrigin = -time.Hour

func newFakeClock() *fakeClock { return &fakeClock{wall: testStart, elapsed: clockOrigin} }

func (c *fakeClock) Now() time.Time {
	wall, _ := c.read()
	return wall
}

// read returns both clocks.
func (c *fakeClock) read() (wall time.Time, elapsed time.Duration) {
	if hook := c.hook; hook != nil {
		c.hook = nil
		hook()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.wall, c.elapsed
}

func (c *fakeClock) Elapsed() time.Duration { return c.elapsed }

func (c *fakeClock) Step(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.wall = c.wall.Add(d)
}

func (c *fakeClock) Add(d time.Duration) {
	c.Step(d + time.Duration(c.drift*float64(d)))
	c.mu.Lock()
	defer c.mu.Unlock()
	c.elapsed += d
}

// call is a call of a store.
type call struct {
	ctx     context.Context
	op      string // describe, acquire, renew, get or release
	grant   lease.Grant
	request lease.Request // of a release only its nonce
	unused  time.Time
}

// fakeStore is a store behind a connection that can break.
type fakeStore struct {
	lease.Store
	// on, if not nil, is called in place of do, which calls the store.
	on func(c *call, do func() (lease.Grant, error)) (lease.Grant, error)

	mu    sync.Mutex
	away  error // returned without calling the store, but by Describe
	lose  error // returned after a call that may have written
	calls []call
}

func (s *fakeStore) set(away, lose error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.away, s.lose = away, lose
}

// asked returns the calls of one kind, those without a response included.
func (s *fakeStore) asked(op string) (calls []call) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.calls {
		if c.op == op {
			calls = append(calls, c)
		}
	}
	return calls
}

func (s *fakeStore) call(c call, do func(c call) (lease.Grant, error)) (lease.Grant, error) {
	s.mu.Lock()
	s.calls = append(s.calls, c)
	s.mu.Unlock()
	send := func() (lease.Grant, error) {
		s.mu.Lock()
		away, lose := s.away, s.lose
		s.mu.Unlock()
		if away != nil && c.op != "describe" {
			return lease.Grant{}, away
		}
		g, err := do(c)
		if lose != nil && c.op != "get" && c.op != "describe" {
			return lease.Grant{}, lose
		}
		return g, err
	}
	if s.on == nil {
		return send()
	}
	return s.on(&c, send)
}

func (s *fakeStore) Describe(ctx context.Context) (d lease.Description, err error) {
	_, err = s.call(call{ctx: ctx, op: "describe"}, func(call) (lease.Grant, error) {
		d, err = s.Store.Describe(ctx)
		return lease.Grant{}, err
	})
	return d, err
}

func (s *fakeStore) Acquire(ctx context.Context, r lease.Request) (lease.Grant, error) {
	return s.call(call{ctx: ctx, op: "acquire", request: r}, func(c call) (lease.Grant, error) {
		return s.Store.Acquire(ctx, c.request)
	})
}

func (s *fakeStore) Renew(ctx context.Context, g lease.Grant,
	r lease.Request) (lease.Grant, error) {
	return s.call(call{ctx: ctx, op: "renew", grant: g, request: r},
		func(c call) (lease.Grant, error) {
			return s.Store.Renew(ctx, g, c.request)
		})
}

func (s *fakeStore) Release(ctx context.Context, g lease.Grant, nonce string,
	unused time.Time) error {
	_, err := s.call(call{ctx, "release", g, lease.Request{Nonce: nonce}, unused},
		func(call) (lease.Grant, error) {
			return lease.Grant{}, s.Store.Release(ctx, g, nonce, unused)
		})
	return err
}

func (s *fakeStore) Get(ctx context.Context, g lease.Grant) (lease.Grant, error) {
	return s.call(call{ctx: ctx, op: "get", grant: g},
		func(call) (lease.Grant, error) { return s.Store.Get(ctx, g) })
}

// bench is a Keeper without a goroutine: the test takes its steps.
type bench struct {
	*lease.Loop
	t       *testing.T
	clock   *fakeClock
	memory  stores.Store
	store   *fakeStore // the connection to it
	life    *uint64    // changes when the machine is restored from a snapshot
	reports []error
	codec   *randflake.Codec // of the secret file
}

func (b *bench) secret(context.Context) (*randflake.Codec, error) { return b.codec, nil }

var testCodec = must(randflake.NewCodec([]byte("0123456789abcdef")))

// few is a range of four blocks of one node.
var few = lease.Description{ID: calls.ID, Nodes: 4, BlockSize: 1}

// newBench returns a Keeper with leases of 10 s, which holds none yet.
func newBench(t *testing.T, opts ...lease.Option) *bench {
	t.Helper()
	memory := memstore.New(few)
	b := &bench{t: t, clock: newFakeClock(), memory: memory, store: &fakeStore{Store: memory},
		life: new(uint64(7)), codec: testCodec}
	opts = append([]lease.Option{
		lease.WithClock(b.clock.read), lease.WithTTL(10 * time.Second),
		lease.WithMeterProvider(noop.NewMeterProvider()),
		lease.WithErrorHandler(func(err error) { b.reports = append(b.reports, err) }),
		lease.WithMachine(func() uint64 { return *b.life }),
	}, opts...)
	// which change nothing
	opts = append(opts, nil, lease.WithMeterProvider(nil), lease.WithErrorHandler(nil))
	k := must(lease.NewLoop(b.store, b.secret, opts...))
	k.SetJitter(func() float64 { return 0.5 })
	k.ReportAtOnce()
	b.Loop = k
	return b
}

// newHeld returns a Keeper that holds a lease of the first block.
func newHeld(t *testing.T, opts ...lease.Option) *bench {
	t.Helper()
	b := newBench(t, opts...)
	b.pass(0)
	return b
}

// takeOthers has others acquire every other block for a day.
func (b *bench) takeOthers() {
	b.t.Helper()
	for range few.Blocks() - 1 {
		r := calls.Request(b.clock.Now())
		r.TTL = lease.MaxTTL
		if _, err := b.memory.Acquire(b.t.Context(), r); err != nil {
			b.t.Fatal(err)
		}
	}
}

// releasedByACopy releases the grant as Close does in a copy of the process that used nothing of
// this second.
func (b *bench) releasedByACopy() {
	b.t.Helper()
	if err := b.memory.Release(b.t.Context(), b.Term().Grant(), lease.NewNonce(),
		b.clock.Now()); err != nil {
		b.t.Fatal(err)
	}
}

// during calls f at the beginning of each call of one kind.
func (b *bench) during(op string, f func()) {
	b.store.on = func(c *call, do func() (lease.Grant, error)) (lease.Grant, error) {
		if c.op == op {
			f()
		}
		return do()
	}
}

// once calls f at the beginning of the first call of one kind.
func (b *bench) once(op string, f func()) { b.during(op, sync.OnceFunc(f)) }

// pass lets d pass and takes the steps that are due.
func (b *bench) pass(d time.Duration) {
	b.t.Helper()
	for end := b.clock.Elapsed() + d; ; {
		wait := b.Step(b.t.Context())
		left := end - b.clock.Elapsed()
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

// close closes the Keeper, which has no goroutine.
func (b *bench) close() {
	b.t.Helper()
	b.Seal()
	if err := b.GiveBack(b.t.Context()); err != nil {
		b.t.Error(err)
	}
}

// one generates an ID.
func (b *bench) one() (randflake.Parts, error) {
	b.t.Helper()
	var ids [1]randflake.ID
	n, second, err := b.Fill(ids[:])
	if err != nil {
		return randflake.Parts{}, err
	}
	parts := b.Codec().Decode(ids[0])
	if n != 1 || !parts.Time.Equal(second) {
		b.t.Fatalf("Fill returns %d IDs of second %s, the first is of second %s", n, second,
			parts.Time)
	}
	return parts, nil
}

func (b *bench) mustOne() randflake.Parts {
	b.t.Helper()
	p, err := b.one()
	if err != nil {
		b.t.Fatal(err)
	}
	return p
}

// second generates as many IDs as a block of one node has in a second.
func (b *bench) second() (ids []randflake.ID, at time.Time) {
	ids = make([]randflake.ID, 1<<17)
	n, at, _ := b.Fill(ids)
	return ids[:n], at
}

func (b *bench) wantNode(want uint32) {
	b.t.Helper()
	if p := b.mustOne(); p.Node != want {
		b.t.Errorf("made an ID of node %d, want %d", p.Node, want)
	}
}

func (b *bench) wantError(want error) {
	b.t.Helper()
	if p, err := b.one(); !errors.Is(err, want) {
		b.t.Fatalf("got %+v, %v; want %v", p, err, want)
	}
}

// wantDrops checks how many grants were dropped, by reason.
func (b *bench) wantDrops(want map[string]int64) {
	b.t.Helper()
	total := uint64(0)
	for _, n := range want {
		total += uint64(n)
	}
	if got := b.Drops(); !maps.Equal(got, want) || b.Generation() != total {
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
	g := lease.Grant{Store: calls.ID, Lease: randflake.Lease{Node: node}}
	return must(b.memory.Get(b.t.Context(), g))
}

// wantBlock checks that the store's state of a block is still what it was.
func (b *bench) wantBlock(was lease.Grant) {
	b.t.Helper()
	if now := b.block(was.Node); now != was {
		b.t.Errorf("the block was changed to %+v, it was %+v", now, was)
	}
}
