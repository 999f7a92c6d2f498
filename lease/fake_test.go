package lease_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"go.opentelemetry.io/otel/metric/noop"

	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/driver"
	"github.com/traceflake/traceflake/randflake"
)

var errAway = errors.New("the store is unreachable")

// fakeClock is moved by hand: both clocks by Add, only the wall clock by Step.
type fakeClock struct {
	mu      sync.Mutex
	wall    time.Time
	elapsed time.Duration
	drift   float64 // of the wall clock against the monotonic one, per second
}

var testStart = time.Date(2026, 5, 4, 3, 2, 1, 0, time.UTC)

func newFakeClock() *fakeClock { return &fakeClock{wall: testStart} }

func (c *fakeClock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.wall
}

func (c *fakeClock) Elapsed() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.elapsed
}

func (c *fakeClock) Add(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.wall, c.elapsed = c.wall.Add(d+time.Duration(c.drift*float64(d))), c.elapsed+d
}

func (c *fakeClock) Step(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.wall = c.wall.Add(d)
}

func newMemory() *driver.Memory { return driver.NewMemory() }

// flakyStore is a driver.Memory that can be unreachable and lose responses.
type flakyStore struct {
	*driver.Memory
	mu       sync.Mutex
	away     error // returned without calling the store
	lose     error // returned after calling the store
	asked    int   // calls of Acquire, those away included
	acquires int
	renewals int
}

func (s *flakyStore) set(away, lose error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.away, s.lose = away, lose
}

func (s *flakyStore) call(f func() (lease.Grant, error)) (lease.Grant, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.away != nil {
		return lease.Grant{}, s.away
	}
	g, err := f()
	if s.lose != nil {
		return lease.Grant{}, s.lose
	}
	return g, err
}

func (s *flakyStore) Acquire(ctx context.Context, r lease.Request) (lease.Grant, error) {
	s.mu.Lock()
	s.asked++
	s.mu.Unlock()
	return s.call(func() (lease.Grant, error) { s.acquires++; return s.Memory.Acquire(ctx, r) })
}

func (s *flakyStore) Renew(ctx context.Context, g lease.Grant, r lease.Request) (lease.Grant, error) {
	return s.call(func() (lease.Grant, error) { s.renewals++; return s.Memory.Renew(ctx, g, r) })
}

func (s *flakyStore) Release(ctx context.Context, g lease.Grant, next string, unused time.Time) error {
	_, err := s.call(func() (lease.Grant, error) { return g, s.Memory.Release(ctx, g, next, unused) })
	return err
}

func (s *flakyStore) Get(ctx context.Context, node uint32) (lease.Grant, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.away != nil {
		return lease.Grant{}, s.away
	}
	return s.Memory.Get(ctx, node)
}

// call is a call of a store.
type call struct {
	ctx     context.Context
	op      string        // acquire, renew, get or release
	grant   lease.Grant   // of a get only its node
	request lease.Request // of a release only its nonce
	unused  time.Time
}

// hooked is a store with a function between it and its Keeper.
type hooked struct {
	lease.Store
	on func(c call, do func(call) (lease.Grant, error)) (lease.Grant, error)
}

func (s hooked) Acquire(ctx context.Context, r lease.Request) (lease.Grant, error) {
	return s.on(call{ctx: ctx, op: "acquire", request: r}, func(c call) (lease.Grant, error) { return s.Store.Acquire(ctx, c.request) })
}

func (s hooked) Renew(ctx context.Context, g lease.Grant, r lease.Request) (lease.Grant, error) {
	return s.on(call{ctx: ctx, op: "renew", grant: g, request: r}, func(c call) (lease.Grant, error) { return s.Store.Renew(ctx, g, c.request) })
}

func (s hooked) Release(ctx context.Context, g lease.Grant, nonce string, unused time.Time) error {
	_, err := s.on(call{ctx, "release", g, lease.Request{Nonce: nonce}, unused}, func(call) (lease.Grant, error) {
		return lease.Grant{}, s.Store.Release(ctx, g, nonce, unused)
	})
	return err
}

func (s hooked) Get(ctx context.Context, node uint32) (lease.Grant, error) {
	return s.on(call{ctx: ctx, op: "get"}, func(call) (lease.Grant, error) { return s.Store.Get(ctx, node) })
}

// during has the Keeper use its store with f called at the beginning of each call of one kind.
func (b *bench) during(op string, f func()) {
	b.SetStore(hooked{b.store, func(c call, do func(call) (lease.Grant, error)) (lease.Grant, error) {
		if c.op == op {
			f()
		}
		return do(c)
	}})
}

// asking has the Keeper's requests for time changed.
func (b *bench) asking(change func(*lease.Request)) {
	b.SetStore(hooked{b.store, func(c call, do func(call) (lease.Grant, error)) (lease.Grant, error) {
		change(&c.request)
		return do(c)
	}})
}

// copied returns a copy of b, as on a copy of its machine, that uses the same store and clock.
func (b *bench) copied(opts ...lease.Option) *bench {
	b.t.Helper()
	c := &bench{t: b.t, codec: b.codec, clock: b.clock, store: b.store}
	opts = append([]lease.Option{lease.WithClock(b.clock), lease.WithTTL(10 * time.Second),
		lease.WithErrorHandler(func(err error) { c.reports = append(c.reports, err) })}, opts...)
	var err error
	if c.Keeper, err = b.Remember(opts...); err != nil {
		b.t.Fatal(err)
	}
	return c
}

// bench is a Keeper without a goroutine: the test takes its steps.
type bench struct {
	*lease.Keeper
	t       *testing.T
	codec   *randflake.Codec
	clock   *fakeClock
	store   *flakyStore
	reports []error
}

func testCodec(t testing.TB) *randflake.Codec {
	t.Helper()
	c, err := randflake.NewCodec([]byte("0123456789abcdef"))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func newBench(t *testing.T, opts ...lease.Option) *bench {
	t.Helper()
	b := &bench{t: t, codec: testCodec(t), clock: newFakeClock()}
	b.store = &flakyStore{Memory: driver.NewMemory(driver.WithNodeRange(few))}
	opts = append([]lease.Option{lease.WithClock(b.clock), lease.WithTTL(10 * time.Second), lease.WithMeterProvider(noop.NewMeterProvider()),
		lease.WithErrorHandler(func(err error) { b.reports = append(b.reports, err) })}, opts...)
	k, err := lease.NewKeeper(b.store, b.codec, opts...)
	if err != nil {
		t.Fatal(err)
	}
	k.SetJitter(func() float64 { return 0.5 })
	b.Keeper = k
	return b
}

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

// one makes an ID.
func (b *bench) one() (randflake.Parts, error) {
	b.t.Helper()
	var ids [1]randflake.ID
	n, second, err := b.Fill(ids[:])
	if err != nil {
		return randflake.Parts{}, err
	}
	parts := b.codec.Decode(ids[0])
	if n != 1 || !parts.Time.Equal(second) {
		b.t.Fatalf("Fill returns %d IDs of second %s, the first is of second %s", n, second, parts.Time)
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

func (b *bench) wantError(want error) {
	b.t.Helper()
	if p, err := b.one(); !errors.Is(err, want) {
		b.t.Fatalf("got %+v, %v; want %v", p, err, want)
	}
}

// block returns the store's state of a block.
func (b *bench) block(i int) lease.Block {
	b.t.Helper()
	blocks, err := b.store.List(b.t.Context())
	if err != nil {
		b.t.Fatal(err)
	}
	for _, block := range blocks {
		if int(block.Node) == i {
			return block
		}
	}
	return lease.Block(few.Block(i))
}

// few is a range of four blocks of one node.
var few = driver.NodeRange{Nodes: 4, BlockSize: 1}

// renewal returns the request that moves a grant's end to end.
func renewal(nonce string, end time.Time) lease.Request {
	return lease.Request{Nonce: nonce, Now: end.Add(-lease.MaxTTL), TTL: lease.MaxTTL}
}
