package lease_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.opentelemetry.io/otel/metric/noop"

	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/driver"
	"github.com/traceflake/traceflake/randflake"
)

func TestStartRefusesBadConfiguration(t *testing.T) {
	tests := []struct {
		name  string
		store lease.Store
		codec *randflake.Codec
		opt   lease.Option
	}{
		{"no store", nil, testCodec(t), lease.WithMaxBlocks(1)},
		{"no codec", driver.NewMemory(), nil, lease.WithMaxBlocks(1)},
		{"TTL too short", driver.NewMemory(), testCodec(t), lease.WithTTL(time.Second)},
		{"TTL too long", driver.NewMemory(), testCodec(t), lease.WithTTL(25 * time.Hour)},
		{"no blocks", driver.NewMemory(), testCodec(t), lease.WithMaxBlocks(0)},
		{"long owner", driver.NewMemory(), testCodec(t), lease.WithOwner(strings.Repeat("a", 129))},
	}
	for _, tt := range tests {
		if k, err := lease.Start(t.Context(), tt.store, tt.codec, tt.opt); err == nil {
			t.Errorf("%s is taken", tt.name)
			_ = k.Close(t.Context())
		}
	}
}

// The TTL may be 2 s to MaxTTL; the default is DefaultTTL.
func TestTTLBounds(t *testing.T) {
	for _, ttl := range []time.Duration{2 * time.Second, lease.MaxTTL} {
		k := openTest(t, driver.NewMemory(), lease.WithTTL(ttl))
		if err := k.Close(t.Context()); err != nil {
			t.Errorf("%s: %v", ttl, err)
		}
	}
	b := newBench(t, lease.WithTTL(lease.DefaultTTL))
	k, err := lease.NewKeeper(b.store, b.codec, lease.WithClock(b.clock))
	if err != nil {
		t.Fatal(err)
	}
	k.Step(t.Context())
	if end := b.block(0).GrantedUntil; !end.Equal(testStart.Add(lease.DefaultTTL)) {
		t.Errorf("by default a grant ends at %s, want %s after %s", end, lease.DefaultTTL, testStart)
	}
}

func TestRenewsAtHalfTheTTL(t *testing.T) {
	b := newBench(t)
	b.pass(4900 * time.Millisecond)
	if b.store.renewals != 0 {
		t.Fatal("renewed before half the TTL")
	}
	b.pass(200 * time.Millisecond)
	if b.store.renewals != 1 {
		t.Fatalf("%d renewals after half the TTL, want 1", b.store.renewals)
	}
	for range 1000 {
		b.pass(100 * time.Millisecond)
		b.mustOne()
	}
	if b.store.acquires != 1 {
		t.Errorf("%d grants were requested, want 1", b.store.acquires)
	}
}

func TestStoreAway(t *testing.T) {
	b := newBench(t)
	b.store.set(errAway, nil)
	b.pass(time.Second)
	b.wantError(lease.ErrNoLease)

	b.store.set(nil, nil)
	b.pass(15 * time.Second)
	b.mustOne()
	if len(b.reports) != 1 || !errors.Is(b.reports[0], errAway) {
		t.Errorf("reported %v, want the store's error once", b.reports)
	}

	b.store.set(errAway, nil)
	end := b.block(0).GrantedUntil
	for b.clock.Now().Before(end) {
		b.mustOne() // until the lease's end
		b.pass(100 * time.Millisecond)
	}
	b.wantError(randflake.ErrLeaseExpired)
	b.pass(time.Minute)
	b.wantError(randflake.ErrLeaseExpired)
	if len(b.reports) != 2 {
		t.Errorf("reported %v, want one more", b.reports)
	}

	b.store.set(nil, nil)
	b.pass(lease.MaxBackoff * 2)
	b.mustOne()
}

// A store without a free block may have to read everything to say so: it is asked rarely.
func TestFullStoreIsAskedRarely(t *testing.T) {
	b := newBench(t, lease.WithTTL(10*time.Minute))
	for _, c := range []struct {
		err   error
		about int
	}{{lease.ErrNoFreeNode, 60}, {errAway, 360}} {
		b.store.set(c.err, nil)
		before := b.store.asked
		for range 3600 {
			b.pass(time.Second)
		}
		if n := b.store.asked - before; n > c.about*3/2 || n < c.about*2/3 {
			t.Errorf("%v: asked %d times in an hour, want about %d", c.err, n, c.about)
		}
	}
	b.store.set(nil, nil)
	b.pass(lease.MaxBackoff * 2)
	b.mustOne()
}

// Before the store's first answer, the error contains only the context's.
func TestReadyBeforeAnyAnswer(t *testing.T) {
	b := newBench(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := b.Ready(ctx); !errors.Is(err, context.Canceled) || strings.Contains(err.Error(), "store") {
		t.Errorf("got %v", err)
	}
}

// Fill returns the remaining IDs together with the error.
func TestFillReturnsTheRest(t *testing.T) {
	b := newBench(t, lease.WithMaxBlocks(1))
	b.pass(0)
	size := int(b.Terms()[0].Grant().Nodes) << 17 // the number of IDs in a second
	for range 2 {
		if n, _, err := b.Fill(make([]randflake.ID, size)); n != size || err != nil {
			t.Fatalf("got %d, %v", n, err)
		}
	}
	if n, _, err := b.Fill(make([]randflake.ID, size-1)); n != size-1 || err != nil {
		t.Fatalf("got %d, %v", n, err)
	}
	ids := make([]randflake.ID, 5)
	n, at, err := b.Fill(ids)
	if n != 1 || !errors.Is(err, randflake.ErrExhausted) {
		t.Errorf("got %d, %v, want one ID and ErrExhausted", n, err)
	}
	if p := b.codec.Decode(ids[0]); !p.Time.Equal(at) {
		t.Errorf("the ID %+v is not of second %s", p, at)
	}
}

// A store may grant less than requested.
func TestAdoptsTheStoredEnd(t *testing.T) {
	b := newBench(t)
	b.asking(func(r *lease.Request) { r.TTL = 3 * time.Second })
	b.pass(0)
	b.clock.Add(2 * time.Second)
	b.mustOne()
	b.clock.Add(time.Second)
	b.wantError(randflake.ErrLeaseExpired)

	b.pass(20 * time.Second) // another grant, renewed often enough
	b.mustOne()
	if b.store.acquires != 2 {
		t.Errorf("%d grants were requested, want 2", b.store.acquires)
	}
}

// A step of the clock drops the grant before an ID is made with the new time; the block is not
// returned, because a clone may use it.
func TestClockStep(t *testing.T) {
	for name, d := range map[string]time.Duration{
		"forward":    90 * time.Second,
		"back":       -90 * time.Second,
		"a bit":      1100 * time.Millisecond,
		"a bit back": -1100 * time.Millisecond,
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			b.pass(0)
			b.mustOne()
			before := b.block(0)
			b.clock.Step(d)
			if p, err := b.one(); err == nil {
				t.Fatalf("made an ID of second %s", p.Time)
			}
			b.wantError(lease.ErrNoLease)
			if b.Generation() != 1 {
				t.Errorf("generation %d, want 1", b.Generation())
			}
			b.pass(0)
			switch p := b.mustOne(); {
			case d < time.Minute && p.Node != 1:
				t.Errorf("the ID's node is %d, want 1", p.Node)
			case !p.Time.Equal(testStart.Add(d).Truncate(time.Second)):
				t.Errorf("the ID's second is %s, want %s", p.Time, testStart.Add(d))
			}
			if after := b.block(0); d < time.Minute && after != before {
				t.Errorf("the dropped block was changed to %+v", after)
			}
		})
	}
}

func TestClockBehindDropsTheGrant(t *testing.T) {
	b := newBench(t)
	b.pass(0)
	// Ahead by borrowing, then twice back by less than a gap.
	ids := make([]randflake.ID, 1<<17)
	for range 3 {
		if _, _, err := b.Terms()[0].Generator().Fill(ids); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 {
		b.clock.Step(-900 * time.Millisecond)
		b.Terms()[0].Slew(-900 * time.Millisecond) // as if slewed
	}
	if _, err := b.one(); !errors.Is(err, randflake.ErrClockBehind) {
		t.Fatalf("got %v, want ErrClockBehind", err)
	}
	b.pass(0)
	if p := b.mustOne(); p.Node == 0 {
		t.Error("the Keeper continues with the same block")
	}
	if b.Generation() != 1 || b.Drops()["clock_behind"] != 1 {
		t.Errorf("generation %d, dropped %v, want 1", b.Generation(), b.Drops())
	}
}

func TestMoreBlocksWhenBusy(t *testing.T) {
	b := newBench(t, lease.WithMaxBlocks(3))
	b.pass(0)
	ids := make([]randflake.ID, 1<<16)
	burst := func() (made int, nodes map[uint32]bool) {
		nodes = map[uint32]bool{}
		for range 40 {
			n, _, err := b.Fill(ids)
			if n > 0 {
				nodes[b.codec.Decode(ids[0]).Node] = true
				made += n
			}
			if err != nil {
				break
			}
			if len(b.Kick()) > 0 {
				<-b.Kick()
				b.Step(t.Context())
			}
		}
		return made, nodes
	}
	// Borrowing acquires the next block: IDs are refused only when all three blocks have borrowed
	// all that they may.
	made, nodes := burst()
	if len(nodes) != 3 || made != 3*3<<17 {
		t.Errorf("%d IDs of %d nodes, want %d of 3", made, len(nodes), 3*3<<17)
	}
	if got := b.Published(); got != 3 {
		t.Fatalf("%d blocks are held, want 3", got)
	}
	b.pass(time.Minute)
	if got := b.Published(); got != 1 {
		t.Errorf("%d blocks are held when idle, want 1", got)
	}
	released := 0
	for i := range 4 {
		if blk := b.block(i); blk.Version > 0 && blk.Owner == "" {
			released++
		}
	}
	if released != 2 || len(b.reports) != 0 {
		t.Errorf("%d blocks were returned, want 2; reported %v", released, b.reports)
	}
	b.mustOne()
}

func openTest(t *testing.T, s lease.Store, opts ...lease.Option) *lease.Keeper {
	t.Helper()
	opts = append([]lease.Option{lease.WithMeterProvider(noop.NewMeterProvider()), lease.WithErrorHandler(func(error) {})}, opts...)
	k, err := lease.Start(t.Context(), s, testCodec(t), opts...)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// inTime runs f with a clock that stands still while goroutines run.
func inTime(t *testing.T, f func(*testing.T)) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Until(testStart)) // a bubble begins in 2000, before the epoch
		f(t)
	})
}

func TestReadyAfterClose(t *testing.T) {
	b := newBench(t)
	b.pass(0)
	if err := b.Ready(t.Context()); err != nil {
		t.Fatal(err)
	}
	b.Seal()
	if err := b.Ready(t.Context()); !errors.Is(err, lease.ErrClosed) {
		t.Errorf("after Close: %v, want %v", err, lease.ErrClosed)
	}
}

// A clock that runs ahead while a grant is held is refused at the next renewal, as it would be by
// an Acquire. The grant is used to its end, and the refusal reported once.
func TestClockRunsAhead(t *testing.T) {
	b := newBench(t)
	store := driver.NewMemory(driver.WithNodeRange(few), driver.WithClock(trueClock{b.clock}))
	b.SetStore(store)
	b.clock.drift = 0.2
	for b.clock.Now().Sub(trueClock{b.clock}.Now()) <= lease.MaxClockAhead {
		b.pass(time.Second)
		b.mustOne()
	}
	end := b.Terms()[0].Grant().End
	if len(b.reports) > 0 || end.After(trueClock{b.clock}.Now().Add(lease.MaxClockAhead+10*time.Second)) {
		t.Fatalf("reported %v, granted until %s", b.reports, end)
	}
	for b.clock.Now().Add(2 * time.Second).Before(end) {
		b.pass(time.Second)
		b.mustOne()
	}
	b.pass(5 * time.Second)
	b.wantError(randflake.ErrLeaseExpired)
	if len(b.reports) != 1 || !errors.Is(b.reports[0], lease.ErrClockAhead) || !errors.Is(b.Failure(), lease.ErrClockAhead) {
		t.Errorf("reported %v, failure %v; want one %v", b.reports, b.Failure(), lease.ErrClockAhead)
	}
}

// trueClock is a clock that does not drift.
type trueClock struct{ *fakeClock }

func (c trueClock) Now() time.Time { return testStart.Add(c.Elapsed()) }

func TestReady(t *testing.T) {
	inTime(t, func(t *testing.T) {
		store := &flakyStore{Memory: driver.NewMemory(), away: errAway}
		k := openTest(t, store)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := k.Ready(ctx); !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, errAway) {
			t.Errorf("got %v, want the context's error and the store's", err)
		}
		store.set(nil, nil)
		if err := k.Ready(t.Context()); err != nil {
			t.Error(err)
		}
		if _, err := k.Next(); err != nil {
			t.Error(err)
		}
		if err := k.Close(t.Context()); err != nil {
			t.Error(err)
		}

		store.set(errAway, nil)
		k = openTest(t, store)
		done := make(chan error)
		go func() { done <- k.Ready(t.Context()) }()
		synctest.Wait()
		_ = k.Close(t.Context())
		if err := <-done; !errors.Is(err, lease.ErrClosed) {
			t.Errorf("got %v, want ErrClosed", err)
		}
	})
}

// The Keeper of a process that is idle for days keeps its lease, whatever becomes of the context
// passed to Start.
func TestKeepsForDays(t *testing.T) {
	inTime(t, func(t *testing.T) {
		store := &flakyStore{Memory: driver.NewMemory()}
		ctx, cancel := context.WithCancel(t.Context())
		k, err := lease.Start(ctx, store, testCodec(t), lease.WithMeterProvider(noop.NewMeterProvider()),
			lease.WithErrorHandler(func(err error) { t.Error(err) }))
		if err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		cancel()
		time.Sleep(48 * time.Hour)
		if _, err := k.Next(); err != nil {
			t.Error(err)
		}
		if store.acquires != 1 || store.renewals < 500 || store.renewals > 700 {
			t.Errorf("%d grants and %d renewals in 48 h, want 1 and about 576", store.acquires, store.renewals)
		}
		_ = k.Close(t.Context())
	})
}

func TestClose(t *testing.T) {
	inTime(t, func(t *testing.T) {
		store := driver.NewMemory()
		k := openTest(t, store)
		if err := k.Ready(t.Context()); err != nil {
			t.Fatal(err)
		}
		if _, err := k.Next(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(3 * time.Second)
		for range 2 {
			if err := k.Close(t.Context()); err != nil {
				t.Error(err)
			}
		}
		blocks, err := store.List(t.Context())
		if err != nil || len(blocks) != 1 {
			t.Fatal(blocks, err)
		}
		if b := blocks[0]; b.Owner != "" || !b.GrantedUntil.Equal(testStart.Add(time.Second)) {
			t.Errorf("the block is %+v, want it returned from the second after the last ID", b)
		}
		if _, err := k.Next(); !errors.Is(err, lease.ErrClosed) {
			t.Errorf("got %v, want ErrClosed", err)
		}
		if n, _, err := k.Fill(make([]randflake.ID, 3)); n != 0 || !errors.Is(err, lease.ErrClosed) {
			t.Errorf("got %d, %v, want ErrClosed", n, err)
		}
	})
}

// The store answers when the context ends, or never.
func TestCloseWhileTheStoreHangs(t *testing.T) {
	inTime(t, func(t *testing.T) {
		for _, heeds := range []bool{true, false} {
			hang := make(chan struct{})
			store := hooked{driver.NewMemory(), func(c call, do func(call) (lease.Grant, error)) (lease.Grant, error) {
				switch {
				case c.op != "renew":
					return do(c)
				case heeds:
					<-c.ctx.Done()
				default:
					<-hang
				}
				return lease.Grant{}, errAway
			}}
			k := openTest(t, store, lease.WithTTL(4*time.Second))
			if err := k.Ready(t.Context()); err != nil {
				t.Fatal(err)
			}
			if _, err := k.Next(); err != nil {
				t.Fatal(err)
			}
			time.Sleep(3 * time.Second) // during the renewal
			if _, err := k.Next(); err != nil {
				t.Errorf("no IDs while a renewal hangs: %v", err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			err := k.Close(ctx)
			cancel()
			if heeds && err != nil || !heeds && !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("Close returns %v (the store heeds contexts: %v)", err, heeds)
			}
			if _, err := k.Next(); !errors.Is(err, lease.ErrClosed) {
				t.Errorf("got %v, want ErrClosed", err)
			}
			close(hang)
			synctest.Wait()
		}
	})
}

// Many goroutines make IDs while grants are acquired, dropped and closed.
func TestConcurrentUse(t *testing.T) {
	store := driver.NewMemory(driver.WithNodeRange(driver.NodeRange{Nodes: 64, BlockSize: 1}))
	k := openTest(t, store, lease.WithTTL(2*time.Second))
	if err := k.Ready(t.Context()); err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	seen := map[randflake.ID]bool{}
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			ids := make([]randflake.ID, 500)
			for {
				n, _, err := k.Fill(ids)
				mu.Lock()
				for _, id := range ids[:n] {
					if seen[id] {
						t.Errorf("%s was made twice", id)
					}
					seen[id] = true
				}
				mu.Unlock()
				if errors.Is(err, lease.ErrClosed) {
					return
				}
			}
		})
	}
	time.Sleep(100 * time.Millisecond)
	if err := k.Close(t.Context()); err != nil {
		t.Error(err)
	}
	wg.Wait()
	if len(seen) < 1000 {
		t.Errorf("only %d IDs", len(seen))
	}
}
