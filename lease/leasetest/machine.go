package leasetest

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/driver"
)

// stateMachine makes random calls, one at a time, and compares every answer with the rule of
// driver.Block, as a [History] does. If they differ, it looks for a short sequence of calls that
// shows it.
func stateMachine(tb testing.TB, h Harness) {
	rapid.Check(tb, func(t *rapid.T) {
		m := machine{caller: h.caller(t, h.clients(tb, few, 1)[0], few), now: start()}
		t.Repeat(map[string]func(*rapid.T){
			"acquire": m.acquire,
			"renew":   m.renew,
			"release": m.release,
			"raise":   m.raise,
			"wait":    func(t *rapid.T) { m.now = m.now.Add(m.step(t)) },
		})
	})
}

type machine struct {
	*caller
	now    time.Time
	grants []lease.Grant // all grants seen, including those that are over
}

// saw keeps a grant.
func (m *machine) saw(g lease.Grant, err error) {
	if err == nil {
		m.grants = append(m.grants, pin(g))
	}
}

// step returns a short time, sometimes a fraction of a second.
func (*machine) step(t *rapid.T) time.Duration {
	return time.Duration(rapid.IntRange(0, 40).Draw(t, "half seconds")) * time.Second / 2
}

// skewed returns the time of a client's clock.
func (m *machine) skewed(t *rapid.T) time.Time {
	return m.now.Add(time.Duration(rapid.IntRange(-20, 20).Draw(t, "skew")) * time.Second / 2)
}

func (m *machine) acquire(t *rapid.T) {
	r := request(m.skewed(t), lease.MinTTL+m.step(t))
	r.Owner = rapid.SampledFrom([]string{"", "a", "host/1"}).Draw(t, "owner")
	if len(m.grants) > 0 && rapid.IntRange(0, 3).Draw(t, "again") == 0 {
		r.Nonce = rapid.SampledFrom(m.grants).Draw(t, "grant").Nonce
	}
	m.saw(m.caller.acquire(r))
}

// block returns the block that starts at a node.
func (m *machine) block(node uint32) driver.Block { return m.blocks[node/few.BlockSize] }

// some returns a grant seen before, sometimes changed.
func (m *machine) some(t *rapid.T) lease.Grant {
	if len(m.grants) == 0 {
		t.Skip("no grant yet")
	}
	g := rapid.SampledFrom(m.grants).Draw(t, "grant")
	switch rapid.IntRange(0, 9).Draw(t, "change") {
	case 0:
		g.Version++
	case 1:
		g.Version--
	case 2:
		g.Nonce = lease.NewNonce()
	case 3, 4:
		g = lease.Grant(m.block(g.Node)) // the newest one, possibly another holder's
	}
	return g
}

func (m *machine) renew(t *rapid.T) {
	g := m.some(t)
	m.saw(m.caller.renew(g, renewal(m.nonce(t, g), m.skewed(t).Add(m.step(t)))))
}

// nonce returns a new nonce, or sometimes that of the block's last write, as in a repeated
// message.
func (m *machine) nonce(t *rapid.T, g lease.Grant) string {
	if b := m.block(g.Node); b.Nonce != "" && rapid.IntRange(0, 4).Draw(t, "repeat") == 0 {
		return b.Nonce
	}
	return lease.NewNonce()
}

func (m *machine) release(t *rapid.T) {
	g := m.some(t)
	m.caller.release(g, m.nonce(t, g), m.skewed(t))
}

func (m *machine) raise(t *rapid.T) {
	if rapid.IntRange(0, 9).Draw(t, "raise") > 0 {
		t.Skip("seldom")
	}
	m.caller.raise(m.skewed(t))
}
