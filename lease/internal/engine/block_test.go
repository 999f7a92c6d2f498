package engine

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/randflake"
)

var testStart = time.Date(2026, 5, 4, 3, 2, 1, 0, time.UTC)

var fresh = strings.Repeat("f", nonceLen)

func at(d time.Duration) time.Time { return testStart.Add(d) }

// held is a block granted for [testStart, testStart+10s), at version 3.
func heldBlock() (b, g lease.Grant) {
	b = lease.Grant{Lease: randflake.Lease{Node: 8, Nodes: 8, Start: testStart,
		End: at(10 * time.Second)}, Nonce: strings.Repeat("a", nonceLen), Version: 3,
		Owner: "web-1"}
	return b, b
}

func TestBlockAcquire(t *testing.T) {
	other := strings.Repeat("b", nonceLen)
	b, _ := heldBlock()
	for _, tt := range []struct {
		now  time.Duration
		free bool
	}{
		{-time.Hour, false}, {0, false}, {9999 * time.Millisecond, false},
		{10 * time.Second, true}, {10500 * time.Millisecond, true}, {time.Hour, true},
	} {
		got, err := acquire(b,
			lease.Request{Nonce: other, Now: at(tt.now), TTL: 3500 * time.Millisecond,
				Owner: "web-2"})
		if !tt.free {
			if !errors.Is(err, lease.ErrNoFreeNode) || got != b {
				t.Errorf("at %s: %+v, %v; want it refused", tt.now, got, err)
			}
			continue
		}
		start := at(tt.now.Truncate(time.Second))
		want := lease.Grant{Lease: randflake.Lease{Node: 8, Nodes: 8, Start: start,
			End: start.Add(3 * time.Second)}, Nonce: other, Version: 4, Owner: "web-2"}
		if err != nil || got != want {
			t.Errorf("at %s: %+v, %v; want %+v", tt.now, got, err, want)
		}
	}
	last := time.Unix(randflake.EndOfLife-2, 0)
	if got, err := acquire(lease.Grant{Lease: randflake.Lease{Nodes: 8}},
		lease.Request{Nonce: other, Now: last, TTL: time.Hour}); err != nil ||
		got.End.Unix() != randflake.EndOfLife {
		t.Errorf("at the end of life: %+v, %v", got, err)
	}
}

// Every write changes version and nonce, even if the end stays the same: or two clients that hold
// one grant would both be told yes.
func TestBlockEnds(t *testing.T) {
	const s, ms = time.Second, time.Millisecond
	b, g := heldBlock()
	for name, tt := range map[string]struct {
		rule         func(time.Time) (lease.Grant, error)
		nonce, owner string                          // afterwards
		ends         map[time.Duration]time.Duration // by the time that the rule is given
	}{
		"renew": {
			func(end time.Time) (lease.Grant, error) { return renew(b, g, renewal(fresh, end)) },
			fresh, b.Owner,
			map[time.Duration]time.Duration{20 * s: 20 * s, 20999 * ms: 20 * s, 10 * s: 10 * s,
				10900 * ms: 10 * s, -time.Hour: 10 * s},
		},
		"release": {
			func(unused time.Time) (lease.Grant, error) { return release(b, g, fresh, unused) },
			fresh, "",
			map[time.Duration]time.Duration{-time.Hour: 0, 0: 0, 4 * s: 4 * s, 4001 * ms: 5 * s,
				10 * s: 10 * s, time.Hour: 10 * s},
		},
	} {
		for given, end := range tt.ends {
			want := b
			want.End, want.Nonce, want.Owner, want.Version = at(end), tt.nonce, tt.owner, 4
			if got, err := tt.rule(at(given)); err != nil || got != want {
				t.Errorf("%s, given %s: %+v, %v; want %+v", name, given, got, err, want)
			}
		}
	}
}

// Renew and Release refuse a grant that is not the block's, and a nonce that is not fresh.
func TestBlockRefuses(t *testing.T) {
	b, held := heldBlock()
	other := strings.Repeat("b", nonceLen)
	for name, tt := range map[string]struct {
		nonce       string // the grant's
		version     uint64
		node, nodes uint32
		next        string
		want        error
	}{
		"another nonce":     {other, 3, 8, 8, fresh, lease.ErrLost},
		"older version":     {held.Nonce, 2, 8, 8, fresh, lease.ErrLost},
		"newer version":     {held.Nonce, 4, 8, 8, fresh, lease.ErrLost},
		"no nonce":          {"", 3, 8, 8, fresh, lease.ErrInvalidRequest},
		"node":              {held.Nonce, 3, 16, 8, fresh, lease.ErrInvalidRequest},
		"nodes":             {held.Nonce, 3, 8, 16, fresh, lease.ErrInvalidRequest},
		"no new nonce":      {held.Nonce, 3, 8, 8, "", lease.ErrInvalidRequest},
		"the grant's nonce": {held.Nonce, 3, 8, 8, held.Nonce, lease.ErrInvalidRequest},
		"a short nonce":     {held.Nonce, 3, 8, 8, fresh[1:], lease.ErrInvalidRequest},
	} {
		g := held
		g.Nonce, g.Version, g.Node, g.Nodes = tt.nonce, tt.version, tt.node, tt.nodes
		if got, err := renew(b, g, renewal(tt.next, at(time.Hour))); !errors.Is(err, tt.want) ||
			got != b {
			t.Errorf("%s: Renew gives %+v, %v; want %v", name, got, err, tt.want)
		}
		if got, err := release(b, g, tt.next, at(0)); !errors.Is(err, tt.want) || got != b {
			t.Errorf("%s: Release gives %+v, %v; want %v", name, got, err, tt.want)
		}
	}
}

func TestCheckRequest(t *testing.T) {
	const ttl = lease.DefaultTTL
	now := testStart
	for name, tt := range map[string]struct {
		nonce, owner string
		now          time.Time
		ttl          time.Duration
		want         error
	}{
		"good":             {fresh, "", now, ttl, nil},
		"short nonce":      {fresh[1:], "", now, ttl, lease.ErrInvalidRequest},
		"upper-case nonce": {"A" + fresh[1:], "", now, ttl, lease.ErrInvalidRequest},
		"no hex digit":     {fresh[1:] + "g", "", now, ttl, lease.ErrInvalidRequest},
		"none in between":  {fresh[:8] + "-" + fresh[9:], "", now, ttl, lease.ErrInvalidRequest},
		"long owner":       {fresh, strings.Repeat("a", 129), now, ttl, lease.ErrInvalidRequest},
		"longest owner":    {fresh, strings.Repeat("ä", 64), now, ttl, nil},
		"control owner":    {fresh, "a\x1b[2J", now, ttl, lease.ErrInvalidRequest},
		"owner not UTF-8":  {fresh, "\xff", now, ttl, lease.ErrInvalidRequest},
		"no TTL":           {fresh, "", now, 0, lease.ErrInvalidRequest},
		"two days":         {fresh, "", now, 48 * time.Hour, lease.ErrInvalidRequest},
		"1970":             {fresh, "", time.Unix(0, 0), ttl, randflake.ErrBeforeEpoch},
		"2060": {fresh, "", time.Unix(randflake.EndOfLife, 0), ttl,
			randflake.ErrEndOfLife},
	} {
		r := lease.Request{Nonce: tt.nonce, Owner: tt.owner, Now: tt.now, TTL: tt.ttl}
		if err := checkRequest(r); !errors.Is(err, tt.want) {
			t.Errorf("%s: %v, want %v", name, err, tt.want)
		}
	}
}

func TestNodes(t *testing.T) {
	for nodes, good := range map[[3]uint32]bool{
		{0, 1 << 17, 8}: true, {0, 1 << 17, 1 << 17}: true, {131071, 1, 1}: true, {24, 16, 8}: true,
		{}: false, {0, 8, 0}: false, {0, 9, 3}: false, {0, 1 << 18, 1 << 18}: false,
		{4, 8, 8}: false, {0, 12, 8}: false, {131072, 8, 8}: false, {131064, 16, 8}: false,
		{8, 1<<32 - 8, 8}: false,
	} {
		d := lease.Description{First: nodes[0], Nodes: nodes[1], BlockSize: nodes[2]}
		if err := checkNodes(d); (err == nil) != good || err != nil &&
			!errors.Is(err, lease.ErrInvalidRequest) {
			t.Errorf("%d: %v", nodes, err)
		}
	}
	r := lease.Description{First: 24, Nodes: 16, BlockSize: 8}
	for node, good := range map[uint32]bool{24: true, 32: true, 0: false, 16: false, 25: false,
		40: false, 1<<32 - 8: false} {
		if err := checkBlock(r, node); (err == nil) != good {
			t.Errorf("a block at node %d: %v", node, err)
		}
	}
}

// renewal returns the request that moves a grant's end to end.
func renewal(nonce string, end time.Time) lease.Request {
	return lease.Request{Nonce: nonce, Now: end.Add(-lease.MaxTTL), TTL: lease.MaxTTL}
}

func TestDescriptions(t *testing.T) {
	d, err := NewDescription(
		lease.Description{Created: testStart.Add(time.Millisecond)})
	if err != nil || d.First != 0 || d.Nodes != 1<<17 || d.BlockSize != 8 ||
		d.LongestTTL != lease.DefaultTTL ||
		!d.Created.Equal(testStart) {
		t.Errorf("got %+v, %v", d, err)
	}
	if other, err := NewDescription(lease.Description{}); err != nil || other.ID == d.ID {
		t.Errorf("IDs %q and %q, %v", d.ID, other.ID, err)
	}
	for name, d := range map[string]lease.Description{
		"nodes without a number": {First: 8}, "half a block": {Nodes: 4}, "an ID": {ID: "orders"},
		"a TTL": {LongestTTL: 1500 * time.Millisecond}, "two days": {LongestTTL: 2 * lease.MaxTTL},
		"a secret": {Secrets: []string{"0123456789abcdef", "hunter2"}},
	} {
		if _, err := NewDescription(d); !errors.Is(err, lease.ErrInvalidRequest) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
