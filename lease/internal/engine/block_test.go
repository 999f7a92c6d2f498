package engine

import (
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
	for _, c := range []struct {
		nonce   string // of the grant
		version uint64
		fresh   string
		want    error
	}{
		{fresh, 3, first, lease.ErrLost}, {"", 3, first, lease.ErrLost},
		{held.Nonce, 2, first, lease.ErrLost}, {held.Nonce, 4, first, lease.ErrLost},
		{held.Nonce, 3, held.Nonce, lease.ErrInvalidRequest},
	} {
		g := held
		g.Nonce, g.Version = c.nonce, c.version
		got, err := renew(held, g, lease.Request{Nonce: c.fresh, Now: at(0), TTL: time.Hour},
			time.Time{})
		if !errors.Is(err, c.want) || got != held {
			t.Errorf("%+v: %+v, %v", c, got, err)
		}
	}
	// A block that was never granted has no nonce that a client could hold.
	if got, err := renew(lease.Grant{}, lease.Grant{}, lease.Request{Nonce: fresh, Now: at(0),
		TTL: time.Hour}, time.Time{}); !errors.Is(err, lease.ErrLost) {
		t.Errorf("a block that was never granted is renewed: %+v, %v", got, err)
	}
}

func TestCheckRequest(t *testing.T) {
	for i, c := range []struct {
		change func(r *lease.Request)
		want   error
	}{
		{func(*lease.Request) {}, nil},
		{func(r *lease.Request) { r.Nonce = fresh[1:] }, lease.ErrInvalidRequest},
		{func(r *lease.Request) { r.Nonce = "A" + fresh[1:] }, lease.ErrInvalidRequest},
		{func(r *lease.Request) { r.Owner += "a" }, lease.ErrInvalidRequest},
		{func(r *lease.Request) { r.Owner = "a\x1b[2J" }, lease.ErrInvalidRequest},
		{func(r *lease.Request) { r.Owner = "\xff" }, lease.ErrInvalidRequest},
		{func(r *lease.Request) { r.TTL-- }, lease.ErrInvalidRequest},
		{func(r *lease.Request) { r.TTL = lease.MaxTTL + 1 }, lease.ErrInvalidRequest},
		{func(r *lease.Request) { r.Now = time.Unix(randflake.Epoch-1, 0) },
			randflake.ErrBeforeEpoch},
		{func(r *lease.Request) { r.Now = time.Unix(randflake.EndOfLife, 0) },
			randflake.ErrEndOfLife},
	} {
		r := lease.Request{Nonce: fresh, Owner: strings.Repeat("ä", 64), Now: testStart,
			TTL: lease.MinTTL}
		c.change(&r)
		if err := checkRequest(r); !errors.Is(err, c.want) {
			t.Errorf("%d: %+v: %v, want %v", i, r, err, c.want)
		}
	}
}

func TestDescriptions(t *testing.T) {
	const minute, ms = time.Minute, time.Millisecond
	for _, c := range []struct {
		first, nodes, size uint32
		ttl                time.Duration
		good               bool
	}{
		{0, 1 << 17, 8, minute, true}, {0, 1 << 17, 1 << 17, lease.MaxTTL, true},
		{131071, 1, 1, minute, true}, {24, 16, 8, minute, true}, {0, 0, 0, minute, false},
		{0, 8, 0, minute, false}, {0, 9, 3, minute, false}, {0, 1 << 18, 1 << 18, minute, false},
		{4, 8, 8, minute, false}, {0, 12, 8, minute, false}, {131072, 8, 8, minute, false},
		{131064, 16, 8, minute, false}, {8, 1<<32 - 8, 8, minute, false},
		{0, 8, 8, 1500 * ms, false},
		{0, 8, 8, 2 * lease.MaxTTL, false}, {0, 8, 8, 0, false},
	} {
		err := checkDescription(lease.Description{First: c.first, Nodes: c.nodes,
			BlockSize: c.size, LongestTTL: c.ttl})
		if (err == nil) != c.good || err != nil && !errors.Is(err, lease.ErrInvalidRequest) {
			t.Errorf("%+v: %v", c, err)
		}
	}
	d := lease.Description{First: 24, Nodes: 16, BlockSize: 8}
	for node, good := range map[uint32]bool{24: true, 32: true, 16: false, 25: false, 40: false,
		1<<32 - 8: false} {
		if err := checkBlock(d, node); (err == nil) != good {
			t.Errorf("a block at node %d: %v", node, err)
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
	c.Complete = false
	if all := c.earlier(nil, at(0)); all[0] != c.Earlier[0] {
		t.Errorf("after an incomplete one: %+v", all[0])
	}
}
