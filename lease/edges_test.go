package lease_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/metric/embedded"
	"go.opentelemetry.io/otel/metric/noop"
	sdk "go.opentelemetry.io/otel/sdk/metric"

	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/driver"
	"github.com/traceflake/traceflake/randflake"
)

// borrow makes IDs until the first block must borrow from the next second.
func (b *bench) borrow() {
	b.t.Helper()
	ids := make([]randflake.ID, 1<<17)
	for range 2 {
		_, _, _ = b.Fill(ids)
	}
}

// A copy returned the grant, and this process wins its block again just after another goroutine
// dropped the grant: the seconds still count as used.
func TestOwnBlockWonWhileDropped(t *testing.T) {
	b := newBench(t, lease.WithMaxBlocks(2))
	b.pass(time.Second)
	c := b.copied(lease.WithMaxBlocks(2))
	b.Seal()
	if err := b.GiveBackAll(t.Context()); err != nil {
		t.Fatal(err)
	}
	b.clock.Add(time.Second)
	ids, seen := make([]randflake.ID, 1<<17), make(map[randflake.ID]bool)
	fill := func() {
		n, _, _ := c.Fill(ids)
		for _, id := range ids[:n] {
			if seen[id] {
				t.Fatalf("ID %v was made twice: %+v", id, b.codec.Decode(id))
			}
			seen[id] = true
		}
	}
	fill()
	fill() // it borrows, and acquires a second block
	c.during("acquire", func() { c.Drop(c.Terms()[0]) })
	c.Step(t.Context())
	if g := b.block(0); !g.Start.Equal(testStart.Add(2 * time.Second)) {
		t.Fatalf("the block is %+v, want it granted again", g)
	}
	c.SetStore(b.store)
	fill()
}

// The lease ends between two readings of the clock, and its block is free again although no process
// returned it.
func TestOwnBlockWonAtItsEnd(t *testing.T) {
	b := newBench(t)
	b.pass(0)
	b.clock.Add(9900 * time.Millisecond)
	b.borrow()
	b.SetNonces(func() string {
		b.clock.Add(200 * time.Millisecond)
		return lease.NewNonce()
	})
	b.Step(t.Context())
	if got := b.Drops(); got["cloned"] != 0 {
		t.Errorf("dropped %v", got)
	}
	if p := b.mustOne(); p.Node != 0 || p.Time.Before(testStart.Add(10*time.Second)) {
		t.Errorf("made an ID of node %d and second %s", p.Node, p.Time)
	}
}

// A grant that is dropped while another one is acquired is not used again.
func TestDroppedIsNotShown(t *testing.T) {
	published := -1
	var b *bench
	b = newBench(t, lease.WithErrorHandler(func(error) { published = b.Published() }))
	b.pass(0)
	b.borrow()
	b.during("acquire", func() { b.Drop(b.Terms()[0]) })
	b.Step(t.Context())
	if published != 1 {
		t.Errorf("%d grants were in use when the drop was reported, want 1", published)
	}
}

// A drop counts once and wakes the Keeper once, however many goroutines report it.
func TestDropCountsOnce(t *testing.T) {
	b, _ := twoBlocks(t)
	for len(b.Kick()) > 0 {
		<-b.Kick()
	}
	for _, term := range []*lease.Term{b.Terms()[0], b.Terms()[0], b.Terms()[1]} {
		b.Drop(term)
		if got := len(b.Kick()); got != 1 {
			t.Errorf("the Keeper was woken %d times, want 1", got)
		}
	}
	if b.Generation() != 2 || b.Drops()["restored"] != 2 {
		t.Errorf("generation %d, dropped %v, want 2", b.Generation(), b.Drops())
	}
}

// The last reason counts: an expired lease no longer matters after a drop.
func TestDropAfterExpiry(t *testing.T) {
	b := newBench(t)
	b.pass(0)
	b.store.set(errAway, nil)
	b.pass(11 * time.Second)
	b.wantError(randflake.ErrLeaseExpired)
	b.store.set(nil, nil)
	b.pass(5 * time.Second)
	b.mustOne()
	b.store.set(errAway, nil)
	b.Drop(b.Terms()[0])
	b.pass(0)
	b.wantError(lease.ErrNoLease)
}

// A block is busy if it borrowed in this second or the one before.
func TestBusyForASecond(t *testing.T) {
	for after, want := range map[time.Duration]int{0: 2, time.Second: 2, 2 * time.Second: 1} {
		b := newBench(t)
		b.pass(0)
		b.borrow()
		b.clock.Add(after)
		b.Step(t.Context())
		if got := len(b.Terms()); got != want {
			t.Errorf("%s after borrowing, %d blocks are held, want %d", after, got, want)
		}
	}
}

// Borrowing wakes the Keeper once a second; other errors do not wake it.
func TestWokenOnceASecond(t *testing.T) {
	b := newBench(t, lease.WithMaxBlocks(1))
	b.pass(0)
	b.borrow()
	if len(b.Kick()) != 1 {
		t.Fatal("the first borrowing does not wake the Keeper")
	}
	<-b.Kick()
	b.mustOne()
	if len(b.Kick()) != 0 {
		t.Error("the Keeper is woken again in the same second")
	}
	b.clock.Add(12 * time.Second)
	b.wantError(randflake.ErrLeaseExpired)
	if len(b.Kick()) != 0 {
		t.Error("the end of the lease wakes the Keeper as if it were busy")
	}
}

func TestFourBlocksByDefault(t *testing.T) {
	b := newBench(t)
	b.SetStore(driver.NewMemory(driver.WithNodeRange(driver.NodeRange{Nodes: 8, BlockSize: 1})))
	b.pass(0)
	ids := make([]randflake.ID, 1<<17)
	for range 15 {
		_, _, _ = b.Fill(ids)
		b.Step(t.Context())
	}
	if got := b.Published(); got != 4 {
		t.Errorf("%d blocks are held, want 4", got)
	}
}

// A block is returned at the first renewal at least half a TTL after the last borrowing; a failure
// is reported.
func TestReturnsBlocksAfterHalfATTL(t *testing.T) {
	b, _ := twoBlocks(t)
	b.pass(6 * time.Second)
	if got := b.Published(); got != 2 {
		t.Fatalf("%d blocks are held after the first renewal, want 2", got)
	}
	if len(b.reports) != 0 {
		t.Errorf("reported %v", b.reports)
	}
	b.during("release", func() { b.store.set(errAway, nil) })
	b.pass(5 * time.Second)
	if got := b.Published(); got != 1 {
		t.Errorf("%d blocks are held after the second, want 1", got)
	}
	if len(b.reports) == 0 || !errors.Is(b.reports[0], errAway) ||
		!strings.Contains(b.reports[0].Error(), "release") {
		t.Errorf("reported %v", b.reports)
	}
}

// Only blocks still held count: if the third block is dropped while the first is returned, the
// second is renewed.
func TestKeepsTheLastBlock(t *testing.T) {
	b := newBench(t, lease.WithMaxBlocks(3))
	b.pass(0)
	ids := make([]randflake.ID, 1<<17)
	for range 8 {
		_, _, _ = b.Fill(ids)
		b.Step(t.Context())
	}
	terms := slices.Clone(b.Terms())
	if len(terms) != 3 {
		t.Fatalf("%d blocks are held, want 3", len(terms))
	}
	b.pass(6 * time.Second) // renewed
	b.during("release", func() { b.Drop(terms[2]) })
	b.clock.Add(6 * time.Second)
	b.Step(t.Context())
	if !terms[0].Over() || terms[1].Over() || !terms[2].Over() {
		t.Errorf("over: %v, %v, %v, want the second to continue", terms[0].Over(), terms[1].Over(), terms[2].Over())
	}
}

// An unproven grant does not replace a proven one.
func TestUnprovenReplacesNothing(t *testing.T) {
	b := newBench(t, lease.WithMaxBlocks(2))
	b.SetJitter(func() float64 { return 0 }) // renewals well before the end
	b.pass(0)
	b.borrow()
	b.store.set(nil, errAway)
	b.Step(t.Context())
	b.store.set(nil, nil)
	b.SetStore(&scripted{flakyStore: b.store, renew: func(g lease.Grant, next string) (lease.Grant, error) {
		if g.Node == 1 {
			return lease.Grant{}, errAway
		}
		return b.store.Renew(t.Context(), g, renewal(next, b.clock.Now().Add(10*time.Second)))
	}})
	b.pass(5 * time.Second) // the first is renewed
	if len(b.Terms()) != 2 || b.Terms()[1].Proven() {
		t.Fatalf("%d terms, want a second, unproven one", len(b.Terms()))
	}
	b.clock.Add(4 * time.Second)
	b.Step(t.Context())
	if p := b.mustOne(); p.Node != 0 {
		t.Errorf("made an ID of node %d", p.Node)
	}
}

// A raised grant cannot be renewed. Another one is acquired long before its end and stays, and the
// Keeper waits until that end.
func TestRaisedIsReplaced(t *testing.T) {
	b := newBench(t)
	b.SetJitter(func() float64 { return 0 }) // renewals well before the end
	b.pass(0)
	if err := b.store.Raise(t.Context(), testStart); err != nil {
		t.Fatal(err)
	}
	b.pass(5 * time.Second)
	if b.store.acquires != 2 || b.Published() != 2 {
		t.Fatalf("%d grants were requested and %d are used, want 2", b.store.acquires, b.Published())
	}
	b.pass(4 * time.Second) // the other one is renewed
	if got := b.Published(); got != 2 {
		t.Errorf("%d grants are used, want 2", got)
	}
	if wait := b.Step(t.Context()); wait != time.Second {
		t.Errorf("the next step is in %s, want 1s, at the end of the raised grant", wait)
	}
	b.pass(time.Second)
	if p := b.mustOne(); p.Node != 1 {
		t.Errorf("made an ID of node %d, want 1", p.Node)
	}
}

func TestChecksEveryMinute(t *testing.T) {
	b := newBench(t, lease.WithTTL(time.Hour))
	b.pass(0)
	if wait := b.Step(t.Context()); wait != lease.LookEvery {
		t.Errorf("the next step is in %s, want %s", wait, lease.LookEvery)
	}
}

// After a refusal the store is not called again before the due time.
func TestAcquireIsNotRepeatedTooOften(t *testing.T) {
	b := newBench(t)
	b.store.set(errAway, nil)
	calls := 0
	b.during("acquire", func() { calls++ })
	wait := b.Step(t.Context())
	b.Step(t.Context())
	if calls != 1 {
		t.Errorf("%d calls at once, want 1", calls)
	}
	b.clock.Add(wait)
	b.Step(t.Context())
	if calls != 2 {
		t.Errorf("%d calls at the due time, want 2", calls)
	}
}

// Events during a step affect which grants the step renews.
func TestRenewsOnlyRemainingGrants(t *testing.T) {
	for name, happen := range map[string]func(b *bench, cancel func()){
		"the second is dropped": func(b *bench, _ func()) { b.Drop(b.Terms()[1]) },
		"it is closed":          func(_ *bench, cancel func()) { cancel() },
	} {
		t.Run(name, func(t *testing.T) {
			b, _ := twoBlocks(t)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			calls := 0
			b.during("renew", func() { calls++; happen(b, cancel) })
			b.clock.Add(5 * time.Second)
			b.Step(ctx)
			if calls != 1 {
				t.Errorf("%d renewals, want 1", calls)
			}
		})
	}
}

func TestEmptyGrant(t *testing.T) {
	b := newBench(t)
	b.SetStore(hooked{b.store, func(c call, do func(call) (lease.Grant, error)) (lease.Grant, error) {
		g, err := do(c)
		g.Nodes = 0
		return g, err
	}})
	b.Step(t.Context())
	b.wantError(lease.ErrNoLease)
	if len(b.reports) != 1 || !strings.Contains(b.reports[0].Error(), "acquire") {
		t.Errorf("reported %v", b.reports)
	}
}

// An unproven grant is renewed at once, whatever the origin of the monotonic clock.
func TestClockFromAnyMoment(t *testing.T) {
	clock := newFakeClock()
	clock.elapsed = -time.Hour
	b := newBench(t, lease.WithClock(clock))
	b.clock = clock
	b.store.set(nil, errAway)
	b.pass(0)
	b.store.set(nil, nil)
	b.pass(2 * time.Second)
	b.mustOne()
}

// Each call to the store has five seconds, and its context ends with the call.
func TestCallsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		var ctxs []context.Context
		away := false
		b.SetStore(hooked{b.store, func(c call, do func(call) (lease.Grant, error)) (lease.Grant, error) {
			if until, ok := c.ctx.Deadline(); !ok || time.Until(until) != 5*time.Second {
				t.Errorf("%s has until %s, want 5 s", c.op, until)
			}
			if ctxs = append(ctxs, c.ctx); away {
				return lease.Grant{}, errAway
			}
			return do(c)
		}})
		b.pass(0)
		away = true
		b.clock.Add(5 * time.Second)
		b.Step(t.Context())
		away = false
		b.Seal()
		if err := b.GiveBackAll(t.Context()); err != nil {
			t.Error(err)
		}
		if len(ctxs) != 4 {
			t.Errorf("%d calls, want Acquire, Renew, Get and Release", len(ctxs))
		}
		for i, ctx := range ctxs {
			if ctx.Err() == nil {
				t.Errorf("the context of call %d has not ended", i)
			}
		}
		if len(b.reports) != 1 || !errors.Is(b.reports[0], errAway) {
			t.Errorf("reported %v", b.reports)
		}
	})
}

// Nil options change nothing.
func TestNilOptions(t *testing.T) {
	reader := sdk.NewManualReader()
	b := newBench(t, lease.WithMeterProvider(sdk.NewMeterProvider(sdk.WithReader(reader))),
		lease.WithMeterProvider(nil), lease.WithClock(nil), lease.WithErrorHandler(nil))
	b.store.set(errAway, nil)
	b.Step(t.Context())
	if len(b.reports) != 1 {
		t.Errorf("reported %v", b.reports)
	}
	if len(collect(t, reader)) == 0 {
		t.Error("no metrics")
	}
}

// broken is a meter provider that fails for one instrument, or for the callback.
type broken struct {
	embedded.MeterProvider
	name string
}

func (m broken) Meter(string, ...metric.MeterOption) metric.Meter { return brokenMeter{name: m.name} }

type brokenMeter struct {
	noop.Meter
	name string
}

func (m brokenMeter) fail(name string) error {
	if name == m.name {
		return errAway
	}
	return nil
}

func (m brokenMeter) Int64ObservableCounter(
	name string, _ ...metric.Int64ObservableCounterOption,
) (metric.Int64ObservableCounter, error) {
	return noop.Int64ObservableCounter{}, m.fail(name)
}

func (m brokenMeter) Int64ObservableUpDownCounter(
	name string, _ ...metric.Int64ObservableUpDownCounterOption,
) (metric.Int64ObservableUpDownCounter, error) {
	return noop.Int64ObservableUpDownCounter{}, m.fail(name)
}

func (m brokenMeter) Float64ObservableGauge(
	name string, _ ...metric.Float64ObservableGaugeOption,
) (metric.Float64ObservableGauge, error) {
	return noop.Float64ObservableGauge{}, m.fail(name)
}

func (m brokenMeter) RegisterCallback(metric.Callback, ...metric.Observable) (metric.Registration, error) {
	return noop.Registration{}, m.fail("callback")
}

func TestMetricsThatFail(t *testing.T) {
	for _, name := range []string{"requests", "drops", "remaining", "blocks", "callback"} {
		mp := broken{name: "traceflake.lease." + name}
		if name == "callback" {
			mp.name = name
		}
		k, err := lease.Start(t.Context(), newMemory(), testCodec(t), lease.WithMeterProvider(mp))
		if !errors.Is(err, errAway) {
			t.Errorf("%s: %v, want the meter's error", name, err)
			_ = k.Close(t.Context())
		}
	}
}

func TestCloseEndsTheMetrics(t *testing.T) {
	reader := sdk.NewManualReader()
	k, err := lease.Start(t.Context(), newMemory(), testCodec(t),
		lease.WithMeterProvider(sdk.NewMeterProvider(sdk.WithReader(reader))))
	if err != nil {
		t.Fatal(err)
	}
	if len(collect(t, reader)) == 0 {
		t.Error("no metrics before Close")
	}
	if err := k.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if got := collect(t, reader); len(got) != 0 {
		t.Errorf("after Close the metrics are %v", got)
	}
}

func TestRemainingIsExact(t *testing.T) {
	reader := sdk.NewManualReader()
	b := newBench(t, lease.WithMeterProvider(sdk.NewMeterProvider(sdk.WithReader(reader))))
	b.pass(0)
	if left := collect(t, reader)["traceflake.lease.remaining s"]; left != 10 {
		t.Errorf("%v s remain, want 10", left)
	}
}

// Next takes the sequence numbers one by one.
func TestNextSkipsNothing(t *testing.T) {
	b := newBench(t)
	b.pass(0)
	for want := range uint32(3) {
		id, err := b.Next()
		if got := b.codec.Decode(id).Sequence; err != nil || got != want {
			t.Errorf("sequence %d, %v, want %d", got, err, want)
		}
	}
}

// The first block has borrowed all that it may, the second only some. The third block is used as
// soon as the second has borrowed again.
func TestTurns(t *testing.T) {
	b := newBench(t, lease.WithMaxBlocks(3))
	b.pass(0)
	ids := make([]randflake.ID, 1<<17)
	for range 8 {
		_, _, _ = b.Fill(ids)
		if b.Step(t.Context()); len(b.Terms()) == 3 {
			break
		}
	}
	for i, want := range []uint32{1, 2, 2, 2} {
		if p := b.mustOne(); p.Node != want {
			t.Errorf("ID %d is of node %d, want %d", i, p.Node, want)
		}
	}
	if n, _, err := b.Fill(nil); n != 0 || err != nil {
		t.Errorf("of nothing %d, %v", n, err)
	}
}

// hookedClock is a clock that calls a function once when it is read.
type hookedClock struct {
	*fakeClock
	hook func()
}

func (c *hookedClock) Now() time.Time {
	if hook := c.hook; hook != nil {
		c.hook = nil
		hook()
	}
	return c.fakeClock.Now()
}

// The grants are replaced, or the Keeper is closed, while an ID is being made.
func TestChangesWhileAnIDIsMade(t *testing.T) {
	clock := &hookedClock{fakeClock: newFakeClock()}
	b := newBench(t, lease.WithClock(clock))
	b.clock = clock.fakeClock
	b.pass(0)
	b.mustOne()
	clock.hook = func() {
		b.Drop(b.Terms()[0])
		b.Step(t.Context())
	}
	if p := b.mustOne(); p.Node != 1 {
		t.Errorf("made an ID of node %d, want 1", p.Node)
	}
	clock.hook = b.Seal
	b.wantError(lease.ErrClosed)
}
