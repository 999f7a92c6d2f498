package engine

import (
	"cmp"
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
var held = lease.Grant{Lease: randflake.Lease{Node: 8, Nodes: 8, Start: testStart,
	End: at(10 * time.Second)}, Nonce: strings.Repeat("a", nonceLen), Version: 3, Owner: "web-1"}

// Every write changes version and nonce, even if the end stays the same: or two clients that hold
// one grant would both be told yes.
func TestBlocks(t *testing.T) {
	const s, ms = time.Second, time.Millisecond
	renewTo := func(end time.Time) (lease.Grant, error) {
		return renew(held, held, lease.Request{Nonce: fresh, Now: end.Add(-time.Hour),
			TTL: time.Hour})
	}
	giveBack := func(unused time.Time) (lease.Grant, error) {
		return release(held, held, fresh, unused)
	}
	grant := func(now time.Time) (lease.Grant, error) {
		return acquire(held, lease.Request{Nonce: fresh, Now: now, TTL: 3500 * ms, Owner: "web-2"})
	}
	for _, c := range []struct {
		rule       func(time.Time) (lease.Grant, error)
		given      time.Duration
		start, end time.Duration
		owner      string
	}{
		{grant, 10 * s, 10 * s, 13 * s, "web-2"}, {grant, 12500 * ms, 12 * s, 15 * s, "web-2"},
		{renewTo, 20999 * ms, 0, 20 * s, "web-1"}, {renewTo, 10900 * ms, 0, 10 * s, "web-1"},
		{renewTo, -time.Hour, 0, 10 * s, "web-1"},
		{giveBack, -time.Hour, 0, 0, ""}, {giveBack, 4 * s, 0, 4 * s, ""},
		{giveBack, 4001 * ms, 0, 5 * s, ""}, {giveBack, time.Hour, 0, 10 * s, ""},
	} {
		want := lease.Grant{Lease: randflake.Lease{Node: 8, Nodes: 8, Start: at(c.start),
			End: at(c.end)}, Nonce: fresh, Version: 4, Owner: c.owner}
		if got, err := c.rule(at(c.given)); err != nil || got != want {
			t.Errorf("given %s: %+v, %v; want %+v", c.given, got, err, want)
		}
	}
	if got, err := grant(at(9999 * ms)); !errors.Is(err, lease.ErrNoFreeNode) || got != held {
		t.Errorf("before its end the block is granted as %+v, %v", got, err)
	}
	for _, rule := range []func(time.Time) (lease.Grant, error){grant, renewTo} {
		if got, err := rule(time.Unix(randflake.EndOfLife-1, 0)); err != nil ||
			got.End.Unix() > randflake.EndOfLife {
			t.Errorf("at the end of life: %+v, %v", got, err)
		}
	}
}

// Renew and Release refuse a grant that is not the block's, and a nonce that is not fresh.
func TestBlockRefuses(t *testing.T) {
	refused := func(what string, g lease.Grant, nonce string, want error) {
		t.Helper()
		renewed, renew := renew(held, g, lease.Request{Nonce: nonce, Now: at(0), TTL: time.Hour})
		released, release := release(held, g, nonce, at(0))
		if !errors.Is(renew, want) || !errors.Is(release, want) || renewed != held ||
			released != held {
			t.Errorf("%s: Renew returns %v and Release %v, want %v", what, renew, release, want)
		}
	}
	for name, change := range map[string]func(g *lease.Grant){
		"another nonce": func(g *lease.Grant) { g.Nonce = strings.Repeat("b", nonceLen) },
		"older version": func(g *lease.Grant) { g.Version-- },
		"newer version": func(g *lease.Grant) { g.Version++ },
	} {
		g := held
		change(&g)
		refused(name, g, fresh, lease.ErrLost)
	}
	for name, change := range map[string]func(g *lease.Grant){
		"no nonce": func(g *lease.Grant) { g.Nonce = "" },
		"node":     func(g *lease.Grant) { g.Node = 16 },
		"nodes":    func(g *lease.Grant) { g.Nodes = 16 },
	} {
		g := held
		change(&g)
		refused(name, g, fresh, lease.ErrInvalidRequest)
	}
	for _, nonce := range []string{"", held.Nonce, fresh[1:]} {
		refused("the nonce "+nonce, held, nonce, lease.ErrInvalidRequest)
	}
}

func TestCheckRequest(t *testing.T) {
	good := lease.Request{Nonce: fresh, Owner: strings.Repeat("ä", 64), Now: testStart,
		TTL: lease.MinTTL}
	if err := checkRequest(good); err != nil {
		t.Error(err)
	}
	for _, bad := range []struct {
		lease.Request
		want error
	}{
		{lease.Request{Nonce: fresh[1:]}, lease.ErrInvalidRequest},
		{lease.Request{Nonce: "A" + fresh[1:]}, lease.ErrInvalidRequest},
		{lease.Request{Nonce: fresh[:8] + "-" + fresh[9:]}, lease.ErrInvalidRequest},
		{lease.Request{Owner: strings.Repeat("a", 129)}, lease.ErrInvalidRequest},
		{lease.Request{Owner: "a\x1b[2J"}, lease.ErrInvalidRequest},
		{lease.Request{Owner: "\xff"}, lease.ErrInvalidRequest},
		{lease.Request{TTL: lease.MinTTL - 1}, lease.ErrInvalidRequest},
		{lease.Request{TTL: lease.MaxTTL + 1}, lease.ErrInvalidRequest},
		{lease.Request{Now: time.Unix(randflake.Epoch-1, 0)}, randflake.ErrBeforeEpoch},
		{lease.Request{Now: time.Unix(randflake.EndOfLife, 0)}, randflake.ErrEndOfLife},
	} {
		r := lease.Request{Nonce: cmp.Or(bad.Nonce, fresh), Owner: bad.Owner,
			Now: cmp.Or(bad.Now, testStart), TTL: cmp.Or(bad.TTL, lease.MaxTTL)}
		if err := checkRequest(r); !errors.Is(err, bad.want) {
			t.Errorf("%+v: %v, want %v", r, err, bad.want)
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
