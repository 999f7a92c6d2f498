package lease_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.opentelemetry.io/otel/metric/noop"

	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/memstore"
	"github.com/traceflake/traceflake/randflake"
)

func TestConfiguration(t *testing.T) {
	memory := memstore.New(few, testCodec)
	for name, c := range map[string]struct {
		store lease.Store
		ttl   time.Duration
	}{
		"no store":      {nil, lease.MinTTL},
		"TTL too short": {memory, lease.MinTTL - 1},
		"TTL too long":  {memory, lease.MaxTTL + 1},
	} {
		_, err := lease.Start(t.Context(), c.store, testSecrets, lease.WithTTL(c.ttl))
		if err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func TestStoreAway(t *testing.T) {
	b := newBench(t)
	b.store.on = fails(errAway)
	b.pass(time.Second)
	b.wantError(lease.ErrNoLease)

	b.store.on = nil
	b.pass(15 * time.Second)
	b.mustOne()
	b.wantReports(errAway, lease.ErrRecovered) // once each

	b.store.on = fails(errAway)
	for end := b.block(0).End; b.clock.Now().Before(end); {
		b.mustOne() // until the lease's end
		b.pass(100 * time.Millisecond)
	}
	b.wantError(randflake.ErrLeaseExpired)
	b.pass(time.Minute)
	b.wantError(randflake.ErrLeaseExpired)
	b.wantReports(errAway, lease.ErrRecovered, errAway)

	b.store.on = nil
	b.pass(lease.MaxBackoff * 2)
	b.mustOne()
}

// A failure that turns out to be permanent is reported, once for each cause, although a temporary
// one was.
func TestFailureBecomesPermanent(t *testing.T) {
	b := newBench(t)
	for _, err := range []error{errAway, lease.ErrMisconfigured, errAway, lease.ErrMisconfigured,
		lease.ErrWrongSecret, nil, lease.ErrWrongSecret, nil, errAway, lease.ErrWrongSecret} {
		if b.store.on = fails(err); err == nil {
			b.store.on = nil
		}
		b.pass(lease.MaxBackoff * 2)
	}
	b.wantReports(errAway, lease.ErrMisconfigured, lease.ErrWrongSecret, lease.ErrRecovered,
		lease.ErrWrongSecret, lease.ErrRecovered, errAway, lease.ErrWrongSecret)
}

// A store without a free block may have to read all pages to find that out, so it is called rarely.
// With a short TTL every store is called more often, but none continuously, also if its grants are
// useless.
func TestRetries(t *testing.T) {
	for name, c := range map[string]struct {
		ttl    time.Duration
		jitter float64
		answer func(*call) // to an Acquire
		about  int         // calls in an hour
	}{
		"full":             {10 * time.Minute, 0.5, fails(lease.ErrNoFreeNode), 60},
		"unavailable":      {10 * time.Minute, 0.5, fails(errAway), 360},
		"with a short TTL": {24 * time.Second, 0, fails(errAway), 2400},
		"expired": {10 * time.Minute, 0.5, func(c *call) {
			c.grant.Start, c.grant.End = testStart.Add(-time.Hour), testStart
		}, 360},
		"empty":   {10 * time.Minute, 0.5, func(c *call) { c.grant.Nodes = 0 }, 360},
		"foreign": {10 * time.Minute, 0.5, func(c *call) { c.grant.Store = "another" }, 360},
	} {
		b := newBench(t, lease.WithTTL(c.ttl))
		b.SetJitter(func() float64 { return c.jitter })
		b.store.on = func(call *call) {
			if call.op != "acquire" {
				call.send()
				return
			}
			call.grant.Store, call.grant.Nodes = b.history().ID, 1
			call.grant.Start, call.grant.End = testStart, testStart.Add(24*time.Hour)
			c.answer(call)
		}
		for range 360 {
			b.pass(10 * time.Second)
			b.Step(t.Context()) // woken before the due time
		}
		b.wantError(lease.ErrNoLease)
		if n := len(b.store.asked("acquire")); n > c.about*3/2 || n < c.about*2/3 {
			t.Errorf("%s: asked %d times in an hour, want about %d", name, n, c.about)
		}
	}
}

// Each call to the store has five seconds, a begin, which writes every page, five minutes. Its
// context ends with the call.
func TestCallsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.store.on = func(c *call) {
			want := 5 * time.Second
			if c.op == "begin" {
				want = 5 * time.Minute
			}
			if until, ok := c.ctx.Deadline(); !ok || time.Until(until) != want {
				t.Errorf("%s has until %s, want %s", c.op, until, want)
			}
			if c.send(); c.op == "renew" {
				c.err = errAway
			}
		}
		b.pass(5 * time.Second)
		b.objects.Move()
		b.pass(5 * time.Second)
		for _, op := range []string{"describe", "acquire", "renew", "get", "begin"} {
			if c := b.store.asked(op); len(c) == 0 || c[0].ctx.Err() == nil {
				t.Errorf("%d calls of %s, or one has not ended", len(c), op)
			}
		}
	})
}

// The grants are replaced, or the Keeper is closed, while an ID is being generated.
func TestChangesWhileAnIDIsMade(t *testing.T) {
	change := func() {}
	b := newHeld(t, lease.WithMachine(func() uint64 {
		now := change
		change = func() {}
		now()
		return 7
	}))
	b.mustOne()
	change = func() {
		b.Drop(b.Term())
		b.Step(t.Context())
	}
	b.wantNode(1)
	change = b.Seal
	b.wantError(lease.ErrClosed)
}

func TestReady(t *testing.T) {
	b := newBench(t)
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	ready := func(when string, want ...error) {
		t.Helper()
		err := b.Ready(cancelled)
		if (err == nil) != (len(want) == 0) ||
			slices.ContainsFunc(want, func(w error) bool { return !errors.Is(err, w) }) {
			t.Errorf("%s: %v, want %v", when, err, want)
		}
	}
	ready("before any response", context.Canceled)
	if err := b.Ready(cancelled); strings.Contains(err.Error(), "store") {
		t.Error(err)
	}
	b.store.on = fails(errAway)
	b.pass(time.Second)
	ready("without an answer", context.Canceled, errAway)
	b.store.on = nil
	b.pass(time.Second)
	ready("with a lease")
	if p := b.mustOne(); p.Sequence != 0 {
		t.Errorf("Ready took %d IDs", p.Sequence)
	}
	for range 3 { // this second and what may be borrowed
		b.second()
	}
	b.wantError(randflake.ErrExhausted)
	ready("in a burst")
	if len(b.Kick()) != 0 {
		t.Error("an exhausted second wakes the Keeper")
	}
	b.clock.Step(-900 * time.Millisecond)
	ready("after a step of the clock by more than may be borrowed", randflake.ErrClockBehind)
	b.wantDrops("clock_behind")
	if len(b.Kick()) != 1 {
		t.Error("a drop does not wake the Keeper")
	}
	b.pass(0)
	ready("with another lease")
	b.wantNode(1)
	b.store.on = fails(errAway)
	b.pass(time.Minute)
	ready("after the lease", randflake.ErrLeaseExpired, errAway)
	b.Seal()
	ready("after Close", lease.ErrClosed)
}

func openTest(t *testing.T, s lease.Store, opts ...lease.Option) *lease.Keeper {
	t.Helper()
	opts = append([]lease.Option{lease.WithMeterProvider(noop.NewMeterProvider()),
		lease.WithErrorHandler(func(error) {}), nil, lease.WithMeterProvider(nil)}, opts...)
	return must(lease.Start(t.Context(), s, testSecrets, opts...))
}

// inTime runs f with a clock that stands still while goroutines run.
func inTime(t *testing.T, f func(*testing.T)) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Until(testStart)) // a bubble begins in 2000, before the epoch
		f(t)
	})
}

// Ready does not wait for a store whose error retrying cannot fix. Close waits until that is
// reported: a program that ends would lose the report.
func TestReadyEndsWithARefusal(t *testing.T) {
	for away, want := range map[error]error{errAway: context.DeadlineExceeded,
		lease.ErrMisconfigured: lease.ErrNoLease} {
		inTime(t, func(t *testing.T) {
			reported := false
			k := openTest(t, &fakeStore{Store: memstore.New(few, testCodec), on: fails(away)},
				lease.WithErrorHandler(func(error) {
					time.Sleep(50 * time.Millisecond)
					reported = true
				}))
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			began := time.Now()
			err := k.Ready(ctx)
			waited := errors.Is(want, context.DeadlineExceeded)
			if !errors.Is(err, want) || !errors.Is(err, away) ||
				waited != (time.Since(began) == time.Minute) {
				t.Errorf("%v after %s, want %v and %v", err, time.Since(began), want, away)
			}
			if k.Close(); !reported {
				t.Error("a report was not handled")
			}
		})
	}
}

// By default the Keeper of a process that is idle for days keeps its lease of 10 minutes with a
// renewal at half of that, whatever becomes of the context passed to Start. Close gives nothing
// back: until its end nobody else gets the block.
func TestClose(t *testing.T) {
	inTime(t, func(t *testing.T) {
		memory := memstore.New(few, testCodec)
		store := &fakeStore{Store: memory}
		ctx, cancel := context.WithCancel(t.Context())
		k := must(lease.Start(ctx, store, testSecrets,
			lease.WithMeterProvider(noop.NewMeterProvider()),
			lease.WithErrorHandler(func(err error) { t.Error(err) })))
		synctest.Wait()
		cancel()
		time.Sleep(48 * time.Hour)
		synctest.Wait()
		if a, r := len(store.asked("acquire")), len(store.asked("renew")); a != 1 || r < 500 ||
			r > 700 {
			t.Errorf("%d grants and %d renewals in 48 h, want 1 and about 576", a, r)
		}
		before := must(memory.List(t.Context()))
		asked := len(store.calls)
		k.Close()
		k.Close()
		if _, err := k.Next(); !errors.Is(err, lease.ErrClosed) {
			t.Errorf("after Close: %v", err)
		}
		time.Sleep(time.Hour)
		after := must(memory.List(t.Context()))
		if !slices.Equal(before, after) || len(store.calls) != asked {
			t.Errorf("Close sent %d requests and changed the blocks to %+v",
				len(store.calls)-asked, after)
		}
	})
}

// Close does not wait for a store, whatever call hangs, and the goroutine ends with that call.
func TestCloseWhileTheStoreHangs(t *testing.T) {
	for _, hangs := range []string{"describe", "acquire", "renew", "begin"} {
		inTime(t, func(t *testing.T) {
			var ended error
			k := openTest(t, &fakeStore{Store: memstore.New(few, testCodec), on: func(c *call) {
				switch {
				case c.op == hangs:
					<-c.ctx.Done()
					c.err, ended = c.ctx.Err(), c.ctx.Err()
				case c.op == "acquire" && hangs == "begin":
					c.err = lease.ErrMoved
				default:
					c.send()
				}
			}}, lease.WithTTL(4*time.Second))
			ready := make(chan error, 1)
			go func() { ready <- k.Ready(t.Context()) }()
			time.Sleep(3 * time.Second) // a renewal has begun
			began := time.Now()
			k.Close()
			_, err := k.Next()
			if took := time.Since(began); took != 0 || !errors.Is(err, lease.ErrClosed) {
				t.Errorf("while %s hangs: Close took %s, then: %v", hangs, took, err)
			}
			if err := <-ready; errors.Is(err, lease.ErrClosed) == (hangs == "renew") {
				t.Errorf("while %s hangs: Ready returned %v", hangs, err)
			}
			if synctest.Wait(); !errors.Is(ended, context.Canceled) {
				t.Errorf("the call of %s ended with %v", hangs, ended)
			}
		})
	}
}

// A grant that arrives during Close generates no IDs.
func TestAcquireDuringClose(t *testing.T) {
	b := newBench(t)
	b.during("acquire", b.Seal)
	b.Step(t.Context())
	b.wantError(lease.ErrClosed)
	if id, err := b.Term().Generator().Next(); !errors.Is(err, randflake.ErrSealed) {
		t.Errorf("the generator made %v, %v", id, err)
	}
}

// Many goroutines generate IDs while grants are acquired, dropped and closed.
func TestConcurrentUse(t *testing.T) {
	store := memstore.New(lease.Description{Nodes: 64, BlockSize: 1}, testCodec)
	k := openTest(t, store, lease.WithTTL(2*time.Second))
	if err := k.Ready(t.Context()); err != nil {
		t.Fatal(err)
	}
	var made [4][]randflake.ID
	var all sync.WaitGroup
	for i := range made {
		all.Go(func() {
			for ids := make([]randflake.ID, 500); ; {
				n, _, err := k.Fill(ids)
				made[i] = append(made[i], ids[:n]...)
				if errors.Is(err, lease.ErrClosed) {
					return
				}
				if i == 0 && len(made[i]) > 20_000 {
					k.Close()
				}
			}
		})
	}
	all.Wait()
	ids := slices.Sorted(slices.Values(slices.Concat(made[:]...)))
	if n := len(ids); n < 20_000 || len(slices.Compact(ids)) < n {
		t.Errorf("%d IDs, %d of them twice", n, n-len(slices.Compact(ids)))
	}
}
