package leasetest

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/driver"
	"github.com/traceflake/traceflake/randflake"
)

func acquire(tb testing.TB, h Harness) {
	t0 := start()
	for _, c := range []struct {
		name  string
		now   time.Time
		ttl   time.Duration
		nodes driver.NodeRange
		end   time.Time
	}{
		{"whole seconds", t0, time.Minute, few, t0.Add(time.Minute)},
		{"fractions are truncated", t0.Add(900 * time.Millisecond), 1900 * time.Millisecond, few, t0.Add(time.Second)},
		{"another time zone", t0.In(time.FixedZone("", 5*3600)), lease.MinTTL, few, t0.Add(lease.MinTTL)},
		{"longest", t0, lease.MaxTTL, few, t0.Add(lease.MaxTTL)},
		{"default block size", t0, time.Minute, driver.AllNodes, t0.Add(time.Minute)},
		{"one node per block", t0, time.Minute, driver.NodeRange{First: 5, Nodes: 3, BlockSize: 1}, t0.Add(time.Minute)},
		{"the last nodes", t0, time.Minute, driver.NodeRange{First: randflake.MaxNode - 7, Nodes: 8, BlockSize: 8}, t0.Add(time.Minute)},
	} {
		s := h.open(tb, c.nodes)
		versions := map[uint32]uint64{} // a store may write blocks when it is opened
		for _, b := range mustList(tb, s) {
			versions[b.Node] = b.Version
		}
		r := request(c.now, c.ttl)
		r.Owner = strings.Repeat("é", 57) + ", " + c.name[:1] + "'; --\"\\" // the longest and most unusual valid owner
		g := mustAcquire(tb, s, r)
		if _, err := c.nodes.Index(g.Node); err != nil {
			tb.Errorf("%s: %v", c.name, err)
		}
		wantGrant(tb, c.name, g, lease.Grant{
			Lease: randflake.Lease{Node: g.Node, Nodes: c.nodes.BlockSize, Start: t0, End: c.end},
			Nonce: r.Nonce, Owner: r.Owner, Version: versions[g.Node] + 1,
		})
		wantGrant(tb, c.name+": get", mustGet(tb, s, g), g)
	}
}

func acquireAll(tb testing.TB, h Harness) {
	ctx, s, t0 := context.Background(), h.open(tb, few), start()
	var grants []lease.Grant
	for i := range few.Blocks() {
		g := mustAcquire(tb, s, request(t0, time.Minute+time.Duration(i)*time.Second))
		for _, other := range grants {
			if other.Node == g.Node {
				tb.Fatalf("node %d is granted twice: %+v and %+v", g.Node, other, g)
			}
		}
		grants = append(grants, g)
	}
	first := grants[0]
	for _, now := range []time.Time{t0, t0.Add(-time.Hour), first.End.Add(-time.Second), first.End.Add(-1)} {
		_, err := s.Acquire(ctx, request(now, time.Minute))
		wantErr(tb, "acquire at "+now.String(), err, lease.ErrNoFreeNode)
	}
	for _, g := range grants {
		next := mustAcquire(tb, s, request(g.End, time.Minute))
		want := renewed(g, next.Nonce, g.End.Add(time.Minute))
		want.Start = g.End
		wantGrant(tb, "acquire at the end of a grant", next, want)
	}
}

func renew(tb testing.TB, h Harness) {
	ctx, s, t0 := context.Background(), h.open(tb, few), start()
	r := request(t0, time.Minute)
	r.Owner = "a pod"
	g := mustAcquire(tb, s, r)
	extend := func(what string, end, want time.Time) {
		tb.Helper()
		next := lease.NewNonce()
		got, err := s.Renew(ctx, g, renewal(next, end))
		if err != nil {
			tb.Fatalf("%s: %v", what, err)
		}
		wantGrant(tb, what, got, renewed(g, next, want))
		wantGrant(tb, what+": get", mustGet(tb, s, g), got)
		// Of two copies that hold one grant, only one can renew.
		_, err = s.Renew(ctx, g, renewal(lease.NewNonce(), end))
		wantErr(tb, what+": again by a copy of the client", err, lease.ErrLost)
		_, err = s.Renew(ctx, g, renewal(next, end))
		wantErr(tb, what+": again with the same nonce", err, lease.ErrLost)
		wantGrant(tb, what+": get after both", mustGet(tb, s, g), got)
		g = got
	}
	extend("renew", t0.Add(2*time.Minute), t0.Add(2*time.Minute))
	extend("renew with a fraction", t0.Add(3*time.Minute+999*time.Millisecond), t0.Add(3*time.Minute))

	for _, end := range []time.Time{g.End, g.End.Add(999 * time.Millisecond), g.End.Add(-time.Second), t0, t0.Add(-time.Hour)} {
		extend("renew with an end that is not later", end, g.End)
	}
	// Only node, nodes, nonce and version count.
	bare := lease.Grant{Lease: randflake.Lease{Node: g.Node, Nodes: g.Nodes}, Nonce: g.Nonce, Version: g.Version}
	next := lease.NewNonce()
	if got, err := s.Renew(ctx, bare, renewal(next, g.End.Add(time.Second))); err != nil {
		tb.Errorf("renew by node, nonce and version: %v", err)
	} else {
		wantGrant(tb, "renew by node, nonce and version", got, renewed(g, next, g.End.Add(time.Second)))
		g = got
	}

	// A grant that is over can be renewed unless another holder has the block.
	extend("renew when it is over", t0.Add(time.Hour), t0.Add(time.Hour))

	lost := func(what string, g lease.Grant) {
		tb.Helper()
		before := mustGet(tb, s, g)
		_, err := s.Renew(ctx, g, renewal(lease.NewNonce(), t0.Add(5*time.Hour)))
		wantErr(tb, what, err, lease.ErrLost)
		wantGrant(tb, what+": get", mustGet(tb, s, g), before)
	}
	other := g
	other.Nonce = lease.NewNonce()
	lost("renew by another nonce", other)
	for _, v := range []uint64{0, g.Version - 1, g.Version + 1} {
		other = g
		other.Version = v
		lost("renew of another version", other)
	}
	other = g
	other.Node = (g.Node + few.BlockSize) % few.Nodes
	lost("renew of another block", other)

	for range few.Blocks() {
		mustAcquire(tb, s, request(g.End, time.Minute))
	}
	lost("renew of a block with another holder", g)
}

func release(tb testing.TB, h Harness) {
	ctx, t0 := context.Background(), start()
	for _, c := range []struct {
		name        string
		unused, end time.Time // relative to a grant of [t0, t0+1m)
	}{
		{"some seconds", t0.Add(20 * time.Second), t0.Add(20 * time.Second)},
		{"rounded up", t0.Add(20*time.Second + 1), t0.Add(21 * time.Second)},
		{"all of it", t0, t0},
		{"nothing", t0.Add(time.Minute), t0.Add(time.Minute)},
		{"not before the start", t0.Add(-time.Hour), t0},
		{"the zero time", time.Time{}, t0},
		{"not past the end", t0.Add(time.Hour), t0.Add(time.Minute)},
	} {
		s := h.open(tb, few)
		r := request(t0, time.Minute)
		r.Owner = "a pod"
		g := mustAcquire(tb, s, r)
		next := lease.NewNonce()
		if err := s.Release(ctx, g, next, c.unused); err != nil {
			tb.Fatalf("%s: %v", c.name, err)
		}
		// The nonce remains: it distinguishes a release from a raise.
		want := renewed(g, next, c.end)
		want.Owner = ""
		wantGrant(tb, c.name, mustGet(tb, s, g), want)
		wantErr(tb, c.name+": release again", s.Release(ctx, g, next, c.unused), lease.ErrLost)
		_, err := s.Renew(ctx, g, renewal(lease.NewNonce(), t0.Add(time.Hour)))
		wantErr(tb, c.name+": renew", err, lease.ErrLost)
		wantGrant(tb, c.name+": get", mustGet(tb, s, g), want)
	}

	s := h.open(tb, few)
	g := mustAcquire(tb, s, request(t0, time.Minute))
	other := g
	other.Nonce = lease.NewNonce()
	wantErr(tb, "release by another nonce", s.Release(ctx, other, lease.NewNonce(), t0), lease.ErrLost)
	for _, v := range []uint64{0, g.Version + 1} {
		other = g
		other.Version = v
		wantErr(tb, "release of another version", s.Release(ctx, other, lease.NewNonce(), t0), lease.ErrLost)
	}
	wantGrant(tb, "after releases by others", mustGet(tb, s, g), g)
	// The returned seconds are granted again, but none before them.
	for range few.Blocks() - 1 {
		mustAcquire(tb, s, request(t0, time.Hour))
	}
	if err := s.Release(ctx, g, lease.NewNonce(), t0.Add(20*time.Second)); err != nil {
		tb.Fatal(err)
	}
	_, err := s.Acquire(ctx, request(t0.Add(20*time.Second-1), time.Minute))
	wantErr(tb, "acquire before the unused seconds", err, lease.ErrNoFreeNode)
	next := mustAcquire(tb, s, request(t0.Add(20*time.Second), time.Minute))
	if next.Node != g.Node || next.Version != g.Version+2 {
		tb.Errorf("acquire of the unused seconds: got %+v, want node %d with version %d", next, g.Node, g.Version+2)
	}
}

func get(tb testing.TB, h Harness) {
	s := h.open(tb, few)
	for i := range few.Blocks() {
		want := few.Block(i).Grant()
		got := mustGet(tb, s, lease.Grant{Lease: randflake.Lease{Node: want.Node}})
		wantGrant(tb, "get of a block never granted", got, want)
		if !got.Start.IsZero() || !got.End.IsZero() {
			tb.Errorf("get of a block never granted: got %s to %s, want zero times", got.Start, got.End)
		}
	}
	for _, node := range []uint32{1, few.BlockSize - 1, few.BlockSize + 1, few.Nodes, 1 << 31} {
		_, err := s.Get(context.Background(), node)
		wantErr(tb, "get of a node that does not start a block", err, lease.ErrInvalidRequest)
	}
}

func admin(tb testing.TB, s lease.Store) lease.Admin {
	tb.Helper()
	a, ok := s.(lease.Admin)
	if !ok {
		tb.Fatalf("%T does not implement lease.Admin", s)
	}
	return a
}

func mustList(tb testing.TB, s lease.Store) []lease.Block {
	tb.Helper()
	blocks, err := admin(tb, s).List(context.Background())
	if err != nil {
		tb.Fatalf("list: %v", err)
	}
	return blocks
}

// wantList compares the result of List with grants.
func wantList(tb testing.TB, what string, s lease.Store, want []lease.Grant) {
	tb.Helper()
	want = slices.Clone(want)
	slices.SortFunc(want, func(a, b lease.Grant) int { return int(a.Node) - int(b.Node) })
	got := mustList(tb, s)
	if len(got) != len(want) {
		tb.Errorf("%s: got %d blocks, want %d: %+v", what, len(got), len(want), got)
		return
	}
	for i, b := range got {
		wantGrant(tb, what, driver.Block(b).Grant(), want[i])
	}
}

func list(tb testing.TB, h Harness) {
	ctx, s, t0 := context.Background(), h.open(tb, few), start()
	wantList(tb, "an empty store", s, nil)
	var grants []lease.Grant
	for range few.Blocks() {
		r := request(t0, time.Minute)
		r.Owner = "host/" + r.Nonce[:4]
		grants = append(grants, mustAcquire(tb, s, r))
		wantList(tb, "after acquire", s, grants)
	}
	grants[1] = mustRenew(tb, s, grants[1], t0.Add(time.Hour))
	wantList(tb, "after renew", s, grants)
	next := lease.NewNonce()
	if err := s.Release(ctx, grants[2], next, t0.Add(time.Second)); err != nil {
		tb.Fatal(err)
	}
	grants[2] = renewed(grants[2], next, t0.Add(time.Second))
	grants[2].Owner = ""
	wantList(tb, "after release", s, grants)
}

func raise(tb testing.TB, h Harness) {
	ctx, s, t0 := context.Background(), h.open(tb, few), start()
	owned := request(t0, time.Minute)
	owned.Owner = "a pod"
	short := mustAcquire(tb, s, owned)
	long := mustAcquire(tb, s, request(t0, 2*time.Hour))
	until := t0.Add(time.Hour)
	if err := admin(tb, s).Raise(ctx, until.Add(-1)); err != nil { // rounded up
		tb.Fatalf("raise: %v", err)
	}
	for i := range few.Blocks() {
		var want lease.Grant
		switch b := few.Block(i); b.Node {
		case short.Node:
			want = renewed(short, "", until)
		case long.Node:
			want = renewed(long, "", long.End)
		default:
			want = renewed(b.Grant(), "", until)
		}
		want.Owner = ""
		wantGrant(tb, "raised", mustGet(tb, s, want), want)
	}
	if got := len(mustList(tb, s)); got != few.Blocks() {
		tb.Errorf("list after raise: got %d blocks, want %d", got, few.Blocks())
	}
	for _, g := range []lease.Grant{short, long} {
		_, err := s.Renew(ctx, g, renewal(lease.NewNonce(), t0.Add(3*time.Hour)))
		wantErr(tb, "renew after raise", err, lease.ErrLost)
		wantErr(tb, "release after raise", s.Release(ctx, g, lease.NewNonce(), t0), lease.ErrLost)
	}
	_, err := s.Acquire(ctx, request(until.Add(-1), time.Minute))
	wantErr(tb, "acquire before the raised time", err, lease.ErrNoFreeNode)
	// A nonce that a raise cleared can be used again.
	r := request(until, time.Minute)
	r.Nonce = short.Nonce
	for range few.Blocks() - 1 {
		g := mustAcquire(tb, s, r)
		if !g.Start.Equal(until) || g.Node == long.Node {
			tb.Errorf("acquire at the raised time: got %+v", g)
		}
		r = request(until, time.Minute)
	}
	_, err = s.Acquire(ctx, request(until, time.Minute))
	wantErr(tb, "acquire at the raised time", err, lease.ErrNoFreeNode)

	before := mustList(tb, s)
	for _, c := range []struct {
		until time.Time
		want  error
	}{
		{time.Unix(randflake.Epoch-1, 0), randflake.ErrBeforeEpoch},
		{time.Time{}, randflake.ErrBeforeEpoch},
		{time.Unix(randflake.EndOfLife+1, 0), randflake.ErrEndOfLife},
	} {
		wantErr(tb, "raise to "+c.until.String(), admin(tb, s).Raise(ctx, c.until), c.want)
	}
	if after := mustList(tb, s); !slices.Equal(before, after) {
		tb.Errorf("a refused raise wrote %+v, before it was %+v", after, before)
	}
}

func badRequests(tb testing.TB, h Harness) {
	ctx, s, t0 := context.Background(), h.open(tb, few), start()
	good := request(t0, time.Minute)
	for _, c := range []struct {
		name   string
		change func(r *lease.Request)
		want   error
	}{
		{"no nonce", func(r *lease.Request) { r.Nonce = "" }, lease.ErrInvalidRequest},
		{"a short nonce", func(r *lease.Request) { r.Nonce = r.Nonce[1:] }, lease.ErrInvalidRequest},
		{"a nonce in capitals", func(r *lease.Request) { r.Nonce = "ABCDEF0123456789ABCDEF0123456789" }, lease.ErrInvalidRequest},
		{"a nonce that is SQL", func(r *lease.Request) { r.Nonce = "'; DROP TABLE traceflake_leases;-" }, lease.ErrInvalidRequest},
		{"an owner too long", func(r *lease.Request) { r.Owner = strings.Repeat("x", 129) }, lease.ErrInvalidRequest},
		{"an owner that is not UTF-8", func(r *lease.Request) { r.Owner = "\xff" }, lease.ErrInvalidRequest},
		{"an owner with a line break", func(r *lease.Request) { r.Owner = "a\nb" }, lease.ErrInvalidRequest},
		{"no TTL", func(r *lease.Request) { r.TTL = 0 }, lease.ErrInvalidRequest},
		{"a negative TTL", func(r *lease.Request) { r.TTL = -time.Minute }, lease.ErrInvalidRequest},
		{"a TTL below a second", func(r *lease.Request) { r.TTL = lease.MinTTL - 1 }, lease.ErrInvalidRequest},
		{"a TTL too long", func(r *lease.Request) { r.TTL = lease.MaxTTL + 1 }, lease.ErrInvalidRequest},
		{"no time", func(r *lease.Request) { r.Now = time.Time{} }, randflake.ErrBeforeEpoch},
		{"1970", func(r *lease.Request) { r.Now = time.Unix(0, 0) }, randflake.ErrBeforeEpoch},
		{"before the epoch", func(r *lease.Request) { r.Now = time.Unix(randflake.Epoch, -1) }, randflake.ErrBeforeEpoch},
		{"the end of life", func(r *lease.Request) { r.Now = time.Unix(randflake.EndOfLife, 0) }, randflake.ErrEndOfLife},
		{"the year 9999", func(r *lease.Request) { r.Now = time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC) }, randflake.ErrEndOfLife},
	} {
		r := good
		c.change(&r)
		_, err := s.Acquire(ctx, r)
		wantErr(tb, c.name, err, c.want)
	}
	wantList(tb, "after bad requests", s, nil)

	g := mustAcquire(tb, s, good)
	for _, c := range []struct {
		name   string
		change func(g *lease.Grant)
	}{
		{"no nonce", func(g *lease.Grant) { g.Nonce = "" }},
		{"a node that does not start a block", func(g *lease.Grant) { g.Node++ }},
		{"an invalid node", func(g *lease.Grant) { g.Node = 1 << 31 }},
		{"a block of another size", func(g *lease.Grant) { g.Nodes /= 2 }},
		{"the zero grant", func(g *lease.Grant) { *g = lease.Grant{} }},
	} {
		bad := g
		c.change(&bad)
		_, err := s.Renew(ctx, bad, renewal(lease.NewNonce(), t0.Add(time.Hour)))
		wantErr(tb, "renew: "+c.name, err, lease.ErrInvalidRequest)
		wantErr(tb, "release: "+c.name, s.Release(ctx, bad, lease.NewNonce(), t0), lease.ErrInvalidRequest)
	}
	for _, next := range []string{"", "short", strings.ToUpper(lease.NewNonce()), g.Nonce} {
		_, err := s.Renew(ctx, g, renewal(next, t0.Add(time.Hour)))
		wantErr(tb, "renew: next nonce "+next, err, lease.ErrInvalidRequest)
		wantErr(tb, "release: next nonce "+next, s.Release(ctx, g, next, t0), lease.ErrInvalidRequest)
	}
	wantList(tb, "after bad grants", s, []lease.Grant{g})
}

// ahead reports whether the store refused a client whose clock is ahead. It must do so if it knows
// the time, and must not otherwise.
func (h Harness) ahead(tb testing.TB, what string, err error) (refused bool) {
	tb.Helper()
	if h.KnowsTime {
		wantErr(tb, what, err, lease.ErrClockAhead)
		return true
	}
	if err != nil {
		tb.Fatalf("%s: %v", what, err)
	}
	return false
}

func endOfLife(tb testing.TB, h Harness) {
	ctx, s, eol := context.Background(), h.open(tb, few), time.Unix(randflake.EndOfLife, 0)
	g, err := s.Acquire(ctx, request(eol.Add(-time.Second), time.Hour))
	if !h.ahead(tb, "acquire in the last second", err) {
		if !g.End.Equal(eol) {
			tb.Errorf("acquire in the last second: ends %s, want %s", g.End, eol)
		}
		wantGrant(tb, "get", mustGet(tb, s, g), g)
	}
	g = mustAcquire(tb, s, request(start(), time.Minute))
	next := lease.NewNonce()
	r, err := s.Renew(ctx, g, lease.Request{Nonce: next, Now: eol.Add(-time.Second), TTL: time.Hour})
	if !h.ahead(tb, "renew past the end of life", err) {
		wantGrant(tb, "renew past the end of life", r, renewed(g, next, eol))
		wantGrant(tb, "get", mustGet(tb, s, g), r)
	} else {
		wantGrant(tb, "get", mustGet(tb, s, g), g)
	}
}

func clockAhead(tb testing.TB, h Harness) {
	ctx, s := context.Background(), h.open(tb, few)
	const slack = 10 * time.Second // between the store's clock and ours
	now := time.Now()
	g := mustAcquire(tb, s, request(now.Add(lease.MaxClockAhead-slack), time.Minute))
	renew := func(ahead, ttl time.Duration) error {
		got, err := s.Renew(ctx, g, lease.Request{Nonce: lease.NewNonce(), Now: now.Add(ahead), TTL: ttl})
		if err == nil {
			g = got
		}
		return err
	}
	if err := renew(lease.MaxClockAhead-slack, lease.MaxTTL); err != nil {
		tb.Fatalf("renew for the longest TTL: %v", err)
	}
	// A clock that is behind is harmless. This needs a block that was not granted yet, so it is
	// tried before the clocks that a store need not refuse.
	mustAcquire(tb, s, request(time.Unix(randflake.Epoch, 0), time.Minute))
	before := mustList(tb, s)
	for _, ahead := range []time.Duration{lease.MaxClockAhead + slack, time.Hour, 23 * time.Hour, 10 * 365 * 24 * time.Hour} {
		h.ahead(tb, "renew from "+ahead.String()+" ahead", renew(ahead, time.Minute))
	}
	for _, ahead := range []time.Duration{lease.MaxClockAhead + slack, 24 * time.Hour, 10 * 365 * 24 * time.Hour} {
		_, err := s.Acquire(ctx, request(now.Add(ahead), time.Minute))
		h.ahead(tb, "acquire from "+ahead.String()+" ahead", err)
	}
	if after := mustList(tb, s); h.KnowsTime && !slices.Equal(before, after) {
		tb.Errorf("a refused call wrote %+v, before it was %+v", after, before)
	}
}

func cancelled(tb testing.TB, h Harness) {
	s, t0 := h.open(tb, few), start()
	g := mustAcquire(tb, s, request(t0, time.Minute))
	before := mustList(tb, s)
	done, cancel := context.WithCancel(context.Background())
	cancel()
	late, cancel := context.WithDeadline(context.Background(), time.Now().Add(-time.Second))
	defer cancel()
	for _, ctx := range []context.Context{done, late} {
		_, err := s.Acquire(ctx, request(t0, time.Minute))
		wantErr(tb, "acquire", err, ctx.Err())
		_, err = s.Renew(ctx, g, renewal(lease.NewNonce(), t0.Add(time.Hour)))
		wantErr(tb, "renew", err, ctx.Err())
		wantErr(tb, "release", s.Release(ctx, g, lease.NewNonce(), t0), ctx.Err())
		_, err = s.Get(ctx, g.Node)
		wantErr(tb, "get", err, ctx.Err())
		_, err = admin(tb, s).List(ctx)
		wantErr(tb, "list", err, ctx.Err())
		wantErr(tb, "raise", admin(tb, s).Raise(ctx, t0.Add(time.Hour)), ctx.Err())
	}
	if after := mustList(tb, s); !slices.Equal(before, after) {
		tb.Errorf("a cancelled call wrote %+v, before it was %+v", after, before)
	}
}

// firstUse opens a store and makes it access its storage.
func firstUse(open Open, nodes driver.NodeRange) error {
	s, err := open(nodes)
	if err != nil {
		return err
	}
	_, err = s.Acquire(context.Background(), request(start(), time.Minute))
	return err
}

func blockSize(tb testing.TB, h Harness) {
	open := h.New(tb)
	s := mustOpen(tb, open, few)
	g := mustAcquire(tb, s, request(start(), time.Minute))
	for _, size := range []uint32{few.BlockSize / 2, few.BlockSize * 2, driver.DefaultBlockSize} {
		other := few
		other.BlockSize = size
		wantErr(tb, "another block size", firstUse(open, other), lease.ErrBlockSize)
	}
	wantList(tb, "after other block sizes", mustOpen(tb, open, few), []lease.Grant{g})
	for _, bad := range []driver.NodeRange{
		{First: 0, Nodes: 8, BlockSize: 3},
		{First: 4, Nodes: 8, BlockSize: 8},
		{First: 0, Nodes: 2 * few.Nodes, BlockSize: 8},
		{First: 1 << 31, Nodes: 1 << 31, BlockSize: 8},
	} {
		if err := firstUse(h.New(tb), bad); !errors.Is(err, lease.ErrInvalidRequest) {
			tb.Errorf("nodes %+v: got error %v, want %v", bad, err, lease.ErrInvalidRequest)
		}
	}
}

func ranges(tb testing.TB, h Harness) {
	ctx, open, t0 := context.Background(), h.New(tb), start()
	var all []lease.Grant
	for i := range few.Blocks() {
		one := driver.NodeRange{First: few.Block(i).Node, Nodes: few.BlockSize, BlockSize: few.BlockSize}
		s := mustOpen(tb, open, one)
		g := mustAcquire(tb, s, request(t0, time.Minute))
		if g.Node != one.First {
			tb.Errorf("a store of nodes from %d on granted node %d", one.First, g.Node)
		}
		all = append(all, g)
		_, err := s.Acquire(ctx, request(t0, time.Minute))
		wantErr(tb, "acquire outside the range", err, lease.ErrNoFreeNode)
		_, err = s.Get(ctx, few.Block((i+1)%few.Blocks()).Node)
		wantErr(tb, "get outside the range", err, lease.ErrInvalidRequest)
	}
	for _, g := range all {
		one := driver.NodeRange{First: g.Node, Nodes: few.BlockSize, BlockSize: few.BlockSize}
		wantGrant(tb, "get", mustGet(tb, mustOpen(tb, open, one), g), g)
	}
	if err := admin(tb, mustOpen(tb, open, driver.NodeRange{First: 0, Nodes: few.BlockSize, BlockSize: few.BlockSize})).Raise(ctx, t0.Add(time.Hour)); err != nil {
		tb.Fatal(err)
	}
	for _, g := range all[1:] {
		one := driver.NodeRange{First: g.Node, Nodes: few.BlockSize, BlockSize: few.BlockSize}
		wantGrant(tb, "get after a raise elsewhere", mustGet(tb, mustOpen(tb, open, one), g), g)
	}
}

// severalClients checks that a write by one client is visible to all others at once, even to those
// opened before.
func severalClients(tb testing.TB, h Harness) {
	ctx, open, t0 := context.Background(), h.New(tb), start()
	clients := make([]lease.Store, 3)
	for i := range clients {
		clients[i] = mustOpen(tb, open, few)
	}
	g := mustAcquire(tb, clients[0], request(t0, time.Minute))
	for i := range 12 {
		wantGrant(tb, "get elsewhere", mustGet(tb, clients[i%3], g), g)
		next := mustRenew(tb, clients[i%3], g, g.End.Add(time.Second))
		wantGrant(tb, "get elsewhere", mustGet(tb, clients[(i+1)%3], g), next)
		_, err := clients[(i+2)%3].Renew(ctx, g, renewal(lease.NewNonce(), g.End.Add(time.Hour)))
		wantErr(tb, "renew of an old version elsewhere", err, lease.ErrLost)
		g = next
	}
	if err := clients[1].Release(ctx, g, lease.NewNonce(), t0.Add(time.Second)); err != nil {
		tb.Fatal(err)
	}
	wantErr(tb, "release elsewhere", clients[2].Release(ctx, g, lease.NewNonce(), t0), lease.ErrLost)
}
