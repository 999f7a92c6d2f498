package engine

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/randflake"
)

var testStart = time.Date(2026, 5, 4, 3, 2, 1, 0, time.UTC)

var fresh, first = strings.Repeat("f", nonceLen), strings.Repeat("1", nonceLen)

func at(d time.Duration) time.Time { return testStart.Add(d) }

// held is a block granted for [testStart, testStart+10s), at version 3.
var held = lease.Grant{Lease: randflake.Lease{Node: 8, Nodes: 8, Start: testStart,
	End: at(10 * time.Second)}, Acquired: first, Nonce: strings.Repeat("a", nonceLen), Version: 3,
	Owner: "web-1"}

// Every write changes version and nonce, even if the end stays the same: or two clients that hold
// one grant would both be told yes.
func TestBlocks(t *testing.T) {
	const s, ms = time.Second, time.Millisecond
	renewTo := func(end time.Time) (lease.Grant, error) {
		return renew(held, held, lease.Request{Nonce: fresh, Now: end.Add(-time.Hour),
			TTL: time.Hour}, time.Time{})
	}
	grant := func(now time.Time) (lease.Grant, error) {
		return acquire(held, lease.Request{Nonce: fresh, Now: now, TTL: 3500 * ms,
			Owner: "web-2"}, time.Time{})
	}
	for _, c := range []struct {
		rule       func(time.Time) (lease.Grant, error)
		given      time.Duration
		start, end time.Duration
		owner      string
		acquired   string
	}{
		{grant, 10 * s, 10 * s, 13 * s, "web-2", fresh},
		{grant, 12500 * ms, 12 * s, 15 * s, "web-2", fresh},
		{renewTo, 20999 * ms, 0, 20 * s, "web-1", first},
		{renewTo, 10900 * ms, 0, 10 * s, "web-1", first},
		{renewTo, -time.Hour, 0, 10 * s, "web-1", first},
	} {
		want := lease.Grant{Lease: randflake.Lease{Node: 8, Nodes: 8, Start: at(c.start),
			End: at(c.end)}, Acquired: c.acquired, Nonce: fresh, Version: 4, Owner: c.owner}
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

// Renew refuses a grant that is not the block's, and a nonce that is not fresh.
func TestBlockRefuses(t *testing.T) {
	refused := func(what string, g lease.Grant, nonce string, want error) {
		t.Helper()
		got, err := renew(held, g, lease.Request{Nonce: nonce, Now: at(0), TTL: time.Hour},
			time.Time{})
		if !errors.Is(err, want) || got != held {
			t.Errorf("%s: %+v, %v; want %v", what, got, err, want)
		}
	}
	for name, change := range map[string]func(g *lease.Grant){
		"another nonce": func(g *lease.Grant) { g.Nonce = strings.Repeat("b", nonceLen) },
		"older version": func(g *lease.Grant) { g.Version-- },
		"newer version": func(g *lease.Grant) { g.Version++ },
		"no nonce":      func(g *lease.Grant) { g.Nonce = "" },
	} {
		g := held
		change(&g)
		refused(name, g, fresh, lease.ErrLost)
	}
	refused("the same nonce", held, held.Nonce, lease.ErrInvalidRequest)
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
		d := lease.Description{First: nodes[0], Nodes: nodes[1], BlockSize: nodes[2],
			LongestTTL: lease.MaxTTL}
		if err := checkDescription(d); (err == nil) != good || err != nil &&
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
	good := lease.Description{Nodes: 8, BlockSize: 8, LongestTTL: time.Minute}
	for ttl, want := range map[time.Duration]error{time.Minute: nil, lease.MaxTTL: nil,
		1500 * time.Millisecond: lease.ErrInvalidRequest, 2 * lease.MaxTTL: lease.ErrInvalidRequest,
		0: lease.ErrInvalidRequest} {
		if good.LongestTTL = ttl; !errors.Is(checkDescription(good), want) {
			t.Errorf("%s: %v, want %v", ttl, checkDescription(good), want)
		}
	}
}

// A store remembers 64 earlier histories, and more while their leases may be in use. Those that it
// lost, and a client knows, come back. The one that was not complete is none.
func TestEarlierHistories(t *testing.T) {
	history := func(i int, begun time.Time) lease.History {
		return lease.History{ID: fmt.Sprintf("%032x", i), Begun: begun}
	}
	c := &config{Complete: true}
	c.History = history(1000, at(0))
	for i := range 100 {
		c.Earlier = append(c.Earlier, history(999-i, at(-time.Duration(i+1)*time.Hour)))
	}
	lost := history(5, at(-90*time.Minute))
	all := c.earlier([]lease.History{lost, c.Earlier[3]}, at(time.Hour))
	if len(all) != 64 || all[0] != c.History || all[1] != c.Earlier[0] || all[2] != lost {
		t.Errorf("%d histories: %+v", len(all), all)
	}
	if all := c.earlier(nil, at(-90*time.Hour)); len(all) < 90 {
		t.Errorf("%d histories, 24 hours after the 90th ended", len(all))
	}
	c.Begun = c.Earlier[0].Begun // within one second
	if all := c.earlier(nil, at(0)); all[0] != c.History {
		t.Errorf("the newest is %+v", all[0])
	}
	c.Complete = false
	if all := c.earlier(nil, at(0)); all[0] != c.Earlier[0] {
		t.Errorf("after an incomplete one: %+v", all[0])
	}
}
