package leasetest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/driver"
	"github.com/traceflake/traceflake/randflake"
)

// The checks of single calls. They choose the calls; a [caller] judges the answers.

func acquire(tb testing.TB, h Harness) {
	t0 := start()
	for _, nodes := range []driver.NodeRange{
		few, {First: 64, Nodes: 64, BlockSize: 8}, {First: 5, Nodes: 3, BlockSize: 1}, {First: randflake.MaxNode - 7, Nodes: 8, BlockSize: 8},
	} {
		s, first := h.open(tb, nodes), t0.Add(lease.MaxTTL)
		for i := range nodes.Blocks() {
			r := []lease.Request{
				request(t0, time.Minute),
				request(t0.Add(900*time.Millisecond), 1900*time.Millisecond), // fractions are truncated
				request(t0.In(time.FixedZone("", 5*3600)), lease.MinTTL),
				request(t0, lease.MaxTTL),
			}[i%4]
			r.Owner = strings.Repeat("é", 57) + fmt.Sprint(i) + ", '; --\"\\" // a long and unusual one, which is valid
			g := s.granted(r)
			if g.End.Before(first) {
				first = g.End
			}
			s.get(g.Node)
			_, _ = s.acquire(r) // as a repeated message
		}
		for _, now := range []time.Time{t0, t0.Add(-time.Hour), first.Add(-time.Second), first.Add(-1)} {
			_, _ = s.acquire(request(now, time.Minute)) // none is free
		}
		s.granted(request(first, time.Minute)) // at the end of a grant
	}
	s := h.clients(tb, driver.AllNodes, 1)[0]
	g, err := s.Acquire(context.Background(), request(t0, time.Minute))
	if err != nil || g.Nodes != driver.DefaultBlockSize {
		tb.Errorf("all nodes: granted %+v, %v", g, err)
	}
}

func renew(tb testing.TB, h Harness) {
	s, t0 := h.open(tb, few), start()
	r := request(t0, time.Minute)
	r.Owner = "a pod"
	g := s.granted(r)
	extend := func(end time.Time) {
		tb.Helper()
		old, next := g, lease.NewNonce()
		var err error
		if g, err = s.renew(g, renewal(next, end)); err != nil {
			tb.Fatalf("renew to %s: %v", end, err)
		}
		// Of two copies that hold one grant, only one can renew; not even with the same nonce.
		_, _ = s.renew(old, renewal(lease.NewNonce(), end))
		_, _ = s.renew(old, renewal(next, end))
	}
	extend(t0.Add(2 * time.Minute))
	s.granted(r) // with the nonce that the renewal replaced: it is that of no block
	extend(t0.Add(3*time.Minute + 999*time.Millisecond))
	for _, end := range []time.Time{g.End, g.End.Add(999 * time.Millisecond), g.End.Add(-time.Second), t0.Add(-time.Hour)} {
		extend(end) // which is not later
	}
	// Only node, nodes, nonce and version count.
	g = lease.Grant{Lease: randflake.Lease{Node: g.Node, Nodes: g.Nodes}, Nonce: g.Nonce, Version: g.Version}
	// A grant that is over can be renewed unless another holder has the block.
	extend(t0.Add(time.Hour))
	for _, change := range []func(*lease.Grant){
		func(g *lease.Grant) { g.Nonce = lease.NewNonce() },
		func(g *lease.Grant) { g.Version-- },
		func(g *lease.Grant) { g.Version++ },
		func(g *lease.Grant) { g.Node = (g.Node + few.BlockSize) % few.Nodes },
	} {
		other := g
		change(&other)
		_, _ = s.renew(other, renewal(lease.NewNonce(), t0.Add(5*time.Hour)))
		s.release(other, lease.NewNonce(), t0)
	}
	for range few.Blocks() {
		s.granted(request(g.End, time.Minute))
	}
	_, _ = s.renew(g, renewal(lease.NewNonce(), t0.Add(5*time.Hour)))
}

func release(tb testing.TB, h Harness) {
	t0 := start()
	for _, unused := range []time.Time{
		t0.Add(20 * time.Second), t0.Add(20*time.Second + 1), t0, {}, t0.Add(time.Hour), // before the start, and past the end
	} {
		s := h.open(tb, few)
		r := request(t0, time.Minute)
		r.Owner = "a pod"
		g, next := s.granted(r), lease.NewNonce()
		for range few.Blocks() - 1 {
			s.granted(request(t0, 2*time.Hour))
		}
		s.release(g, next, unused)
		s.release(g, next, unused)
		_, _ = s.renew(g, renewal(lease.NewNonce(), t0.Add(time.Hour)))
		// The returned seconds are granted again, but none before them.
		_, _ = s.acquire(request(s.get(g.Node).End.Add(-1), time.Minute))
		s.granted(request(s.get(g.Node).End, time.Minute))
	}
}

func raise(tb testing.TB, h Harness) {
	s, t0 := h.open(tb, few), start()
	owned := request(t0, time.Minute)
	owned.Owner = "a pod"
	short, long := s.granted(owned), s.granted(request(t0, 2*time.Hour))
	until := t0.Add(time.Hour)
	s.raise(until.Add(-1)) // rounded up
	for i := range few.Blocks() {
		s.get(few.Block(i).Node)
	}
	for _, g := range []lease.Grant{short, long} {
		_, _ = s.renew(g, renewal(lease.NewNonce(), t0.Add(3*time.Hour)))
		s.release(g, lease.NewNonce(), t0)
	}
	_, _ = s.acquire(request(until.Add(-1), time.Minute))
	// A nonce that a raise cleared can be used again.
	r := request(until, time.Minute)
	r.Nonce = short.Nonce
	for range few.Blocks() - 1 {
		s.granted(r)
		r = request(until, time.Minute)
	}
	_, _ = s.acquire(request(until, time.Minute))
	for _, bad := range []time.Time{time.Unix(randflake.Epoch-1, 0), {}, time.Unix(randflake.EndOfLife+1, 0)} {
		s.raise(bad)
	}
}

func badRequests(tb testing.TB, h Harness) {
	s, t0 := h.open(tb, few), start()
	g := s.granted(request(t0, time.Minute))
	for _, change := range []func(r *lease.Request){
		func(r *lease.Request) { r.Nonce = "" },
		func(r *lease.Request) { r.Nonce = r.Nonce[1:] },
		func(r *lease.Request) { r.Nonce = "ABCDEF0123456789ABCDEF0123456789" },
		func(r *lease.Request) { r.Nonce = "'; DROP TABLE traceflake_leases;-" },
		func(r *lease.Request) { r.Owner = strings.Repeat("x", 129) },
		func(r *lease.Request) { r.Owner = "\xff" },
		func(r *lease.Request) { r.Owner = "a\nb" },
		func(r *lease.Request) { r.TTL = -time.Minute },
		func(r *lease.Request) { r.TTL = lease.MinTTL - 1 },
		func(r *lease.Request) { r.TTL = lease.MaxTTL + 1 },
		func(r *lease.Request) { r.Now = time.Time{} },
		func(r *lease.Request) { r.Now = time.Unix(randflake.Epoch, -1) },
		func(r *lease.Request) { r.Now = time.Unix(randflake.EndOfLife-1, 0) }, // a grant would end with it
		func(r *lease.Request) { r.Now = time.Unix(randflake.EndOfLife, 0) },
		func(r *lease.Request) { r.Now = time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC) },
	} {
		r := request(t0, time.Minute)
		change(&r)
		_, _ = s.acquire(r)
		if got, err := s.renew(g, r); err == nil {
			g = got
		}
	}
	for _, change := range []func(g *lease.Grant){
		func(g *lease.Grant) { g.Nonce = "" },
		func(g *lease.Grant) { g.Node++ },
		func(g *lease.Grant) { g.Node = 1 << 31 },
		func(g *lease.Grant) { g.Nodes /= 2 },
		func(g *lease.Grant) { *g = lease.Grant{} },
	} {
		bad := g
		change(&bad)
		_, _ = s.renew(bad, renewal(lease.NewNonce(), t0.Add(time.Hour)))
		s.release(bad, lease.NewNonce(), t0)
		s.get(bad.Node)
	}
	for _, next := range []string{"", "short", strings.ToUpper(lease.NewNonce()), g.Nonce} {
		_, _ = s.renew(g, renewal(next, t0.Add(time.Hour)))
		s.release(g, next, t0)
	}
}

func clockAhead(tb testing.TB, h Harness) {
	s, now := h.open(tb, few), time.Now()
	const slack = 10 * time.Second // between the store's clock and ours
	g := s.granted(request(now.Add(lease.MaxClockAhead-slack), time.Minute))
	g, err := s.renew(g, request(now.Add(lease.MaxClockAhead-slack), lease.MaxTTL))
	if err != nil {
		tb.Fatalf("renew for the longest TTL: %v", err)
	}
	// A clock that is behind is harmless. This needs a block that was not granted yet, so it is
	// tried before the clocks that a store need not refuse.
	s.granted(request(time.Unix(randflake.Epoch, 0), time.Minute))
	for _, ahead := range []time.Duration{lease.MaxClockAhead + slack, 23 * time.Hour, 10 * 365 * 24 * time.Hour} {
		if got, err := s.renew(g, request(now.Add(ahead), time.Minute)); err == nil {
			g = got
		}
		_, _ = s.acquire(request(now.Add(ahead), time.Minute))
	}
}

func cancelled(tb testing.TB, h Harness) {
	s := h.open(tb, few)
	g := s.granted(request(start(), time.Minute))
	done, cancel := context.WithCancel(context.Background())
	cancel()
	late, cancel := context.WithDeadline(context.Background(), time.Now().Add(-time.Second))
	defer cancel()
	for _, ctx := range []context.Context{done, late} {
		for call, err := range everyCall(ctx, s.next(), g) {
			if !errors.Is(err, ctx.Err()) {
				tb.Errorf("%s: got error %v, want %v", call, err, ctx.Err())
			}
		}
	}
	s.compare("calls whose contexts are over")
}
