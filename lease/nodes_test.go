package lease_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/memstore"
	"github.com/traceflake/traceflake/randflake"
)

// nodes returns the numbers that a Keeper holds.
func (b *bench) nodes() *lease.Nodes {
	b.t.Helper()
	n, err := b.Nodes(b.t.Context())
	if err != nil {
		b.t.Fatal(err)
	}
	return n
}

// The context ends with the lease, and at once when the lease must not be used any more: Hold
// notices a step of the clock or a restore before the Keeper does. Then no time is held.
func TestNodesEnd(t *testing.T) {
	for name, c := range map[string]struct {
		happen func(*bench)
		cause  error
	}{
		"the end of the lease": {func(b *bench) {
			b.store.set(errAway, nil)
			b.pass(10 * time.Second)
		}, randflake.ErrLeaseExpired},
		"a step of the clock": {func(b *bench) { b.clock.Step(5 * time.Second) }, nil},
		"a restored machine":  {func(b *bench) { *b.life++ }, lease.ErrCloned},
		"a copy that renewed": {func(b *bench) {
			r := lease.Request{Store: few.ID, Nonce: lease.NewNonce(), Now: b.clock.Now()}
			r.TTL = 20 * time.Second
			must(b.memory.Renew(b.t.Context(), b.Term().Grant(), r))
			b.pass(6 * time.Second)
		}, lease.ErrCloned},
		"Close": {(*bench).close, lease.ErrClosed},
	} {
		b := newHeld(t)
		n := b.nodes()
		if n.First != 0 || n.Count != 1 || !n.From.Equal(testStart) ||
			!n.Until().Equal(testStart.Add(10*time.Second)) {
			t.Fatalf("%+v until %s", n, n.Until())
		}
		if n.Context().Err() != nil || !n.Hold(b.clock.Now()) || n.Hold(testStart.Add(-1)) ||
			n.Hold(n.Until()) {
			t.Errorf("%s: the nodes are held at other times than the lease says", name)
		}
		c.happen(b)
		if n.Hold(b.clock.Now()) || n.Hold(testStart) {
			t.Errorf("%s: the nodes are still held", name)
		}
		if cause := context.Cause(n.Context()); cause == nil || c.cause != nil &&
			!errors.Is(cause, c.cause) {
			t.Errorf("%s: the context ended with %v, want %v", name, cause, c.cause)
		}
	}
}

// While the store is unavailable, the context ends a second before the lease, even if a call to the
// store is in flight then.
func TestNodesEndEarly(t *testing.T) {
	for name, away := range map[string]func(context.Context) error{
		"refuses": func(context.Context) error { return errAway },
		"hangs":   func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() },
	} {
		inTime(t, func(t *testing.T) {
			store := &fakeStore{Store: memstore.New(lease.Description{})}
			store.on = func(c *call, do func() (lease.Grant, error)) (lease.Grant, error) {
				if c.op == "renew" && len(store.asked("renew")) > 3 || c.op == "get" {
					return lease.Grant{}, away(c.ctx)
				}
				return do()
			}
			k := openTest(t, store, lease.WithTTL(12*time.Second))
			defer k.Close(t.Context())
			n, err := k.Nodes(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			<-n.Context().Done()
			if left := time.Until(n.Until()); left != time.Second ||
				!errors.Is(context.Cause(n.Context()), randflake.ErrLeaseExpired) ||
				time.Since(testStart) < 24*time.Second {
				t.Errorf("a store that %s: the context ended %s before the lease, after %s: %v",
					name, left, time.Since(testStart), context.Cause(n.Context()))
			}
		})
	}
}

// Renewals move the end, and a busy process holds its nodes for days.
func TestNodesAreRenewed(t *testing.T) {
	b := newHeld(t)
	n := b.nodes()
	for range 100 {
		b.pass(10 * time.Second)
		if n.Context().Err() != nil || !n.Hold(b.clock.Now()) {
			t.Fatalf("at %s: %v, until %s", b.clock.Now(), context.Cause(n.Context()), n.Until())
		}
	}
}

// The lease is over, and the Keeper has not noticed.
func TestNodesOfAnEndedLease(t *testing.T) {
	b := newHeld(t)
	b.clock.Add(10 * time.Second)
	if n, err := b.Nodes(t.Context()); !errors.Is(err, randflake.ErrLeaseExpired) {
		t.Errorf("%+v, %v, want %v", n, err, randflake.ErrLeaseExpired)
	}
}

// Others may have used the numbers until Close, so they are not granted before the lease's end.
func TestNodesAreNotGivenBack(t *testing.T) {
	b := newHeld(t)
	b.nodes()
	before := b.block(0)
	b.close()
	b.wantBlock(before)
}

// Processes on one store that are copied and stopped, and whose clocks are stepped, never use a
// number at once if they respect Hold.
func TestNodesOfClones(t *testing.T) {
	type use struct {
		node uint32
		at   int64 // milliseconds
	}
	memory := memstore.New(lease.Description{Nodes: 3, BlockSize: 1})
	var processes []*bench
	for range 3 {
		b := newBench(t)
		b.store.Store = memory
		processes = append(processes, b)
	}
	held := make([]*lease.Nodes, len(processes))
	used, made := map[use]int{}, 0
	for step := range 20_000 {
		for i, b := range processes {
			switch (step*7 + i*13) % 997 {
			case 1:
				b.clock.Step(time.Duration(step%9-4) * time.Second)
			case 2:
				b.store.set(errAway, nil)
			case 3:
				b.store.set(nil, nil)
			case 4:
				*b.life++
			case 5:
				b.clock.Add(time.Duration(step%30) * time.Second) // it was stopped
			}
			b.clock.Add(10 * time.Millisecond)
			if step%5 == 0 {
				b.Step(t.Context())
			}
			if held[i] == nil || held[i].Context().Err() != nil {
				if held[i] = nil; b.Published() != nil {
					held[i], _ = b.Nodes(t.Context())
				}
				continue
			}
			at := b.clock.Now()
			if !held[i].Hold(at) {
				continue
			}
			made++
			id := use{held[i].First, at.UnixMilli()}
			if other, twice := used[id]; twice && other != i {
				t.Fatalf("processes %d and %d both used %+v", other, i, id)
			}
			used[id] = i
		}
	}
	if made < 20_000 {
		t.Errorf("only %d numbers were used", made)
	}
}

// A store that grants shorter leases than requested is reported once, and every renewal is before
// the end.
func TestShorterTTL(t *testing.T) {
	memory := memstore.New(lease.Description{Nodes: 8, LongestTTL: lease.MinTTL})
	b := newBench(t, lease.WithTTL(10*time.Minute))
	b.store.Store = memory
	b.pass(0)
	for range 3000 {
		b.pass(100 * time.Millisecond)
		b.mustOne()
	}
	if len(b.reports) != 1 {
		t.Errorf("reported %v, want the shorter TTL, once", b.reports)
	}
	if n := len(b.store.asked("acquire")); n != 1 {
		t.Errorf("%d grants, want one that is renewed", n)
	}
}
