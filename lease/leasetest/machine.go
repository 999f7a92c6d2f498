package leasetest

import (
	"context"
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
		m := machine{store: h.open(tb, few), now: start(), blocks: unwritten(few)}
		t.Repeat(map[string]func(*rapid.T){
			"acquire": m.acquire,
			"renew":   m.renew,
			"release": m.release,
			"raise":   m.raise,
			"wait":    func(t *rapid.T) { m.now = m.now.Add(m.step(t)) },
			"":        m.compare,
		})
	})
}

type machine struct {
	store  lease.Store
	now    time.Time
	blocks state
	grants []lease.Grant // all grants seen, including those that are over
}

// call makes a call. The state of the store follows from the rule and the answer.
func (m *machine) call(t *rapid.T, in input, call func() (lease.Grant, error)) {
	g, err := call()
	out := output{grant: pin(g), verdict: judge(err)}
	next := step(m.blocks, few, in, out)
	if out.verdict == unanswered || len(next) == 0 {
		t.Fatalf("%s: %v; the blocks were %+v", describe(in, out), err, m.blocks[:few.Blocks()])
	}
	m.blocks = next[0].(state)
	if err == nil && in.op != opRelease {
		m.grants = append(m.grants, out.grant)
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
	m.call(t, input{op: opAcquire, request: r}, func() (lease.Grant, error) { return m.store.Acquire(context.Background(), r) })
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
		g = m.block(g.Node).Grant() // the newest one, possibly another holder's
	}
	return g
}

func (m *machine) renew(t *rapid.T) {
	g := m.some(t)
	r := renewal(m.nonce(t, g), m.skewed(t).Add(m.step(t)))
	m.call(t, input{op: opRenew, grant: g, request: r}, func() (lease.Grant, error) { return m.store.Renew(context.Background(), g, r) })
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
	unused, nonce := m.skewed(t), m.nonce(t, g)
	m.call(t, input{op: opRelease, grant: g, request: lease.Request{Nonce: nonce}, unused: unused}, func() (lease.Grant, error) {
		return lease.Grant{}, m.store.Release(context.Background(), g, nonce, unused)
	})
}

func (m *machine) raise(t *rapid.T) {
	if rapid.IntRange(0, 9).Draw(t, "raise") > 0 {
		t.Skip("seldom")
	}
	until := m.skewed(t)
	a, ok := m.store.(lease.Admin)
	if !ok {
		t.Fatalf("%T does not implement lease.Admin", m.store)
	}
	if err := a.Raise(context.Background(), until); err != nil {
		t.Fatalf("raise: %v", err)
	}
	for i, b := range m.blocks[:few.Blocks()] {
		m.blocks[i] = b.Raise(until)
	}
}

func (m *machine) compare(t *rapid.T) {
	blocks, err := m.store.(lease.Admin).List(context.Background())
	if err != nil {
		t.Fatalf("list: %v", err)
	}
	for _, want := range m.blocks[:few.Blocks()] {
		if want.Version == 0 {
			continue
		}
		if len(blocks) == 0 || !equal(driver.Block(blocks[0]).Grant(), want.Grant()) {
			t.Fatalf("list: got %+v, want %+v first", blocks, want)
		}
		blocks = blocks[1:]
	}
	if len(blocks) > 0 {
		t.Fatalf("list: %+v were never written", blocks)
	}
}
