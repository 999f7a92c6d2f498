package leasetest

import (
	"context"
	"errors"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/driver"
)

// stateMachine makes random calls, one at a time, and compares every answer with the rule of
// driver.Block. If they differ, it looks for a short sequence of calls that shows it.
func stateMachine(tb testing.TB, h Harness) {
	rapid.Check(tb, func(t *rapid.T) {
		m := machine{store: h.open(tb, few), now: start(), seconds: secondsOf{}}
		for i := range few.Blocks() {
			m.blocks = append(m.blocks, few.Block(i))
		}
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
	store   lease.Store
	now     time.Time
	blocks  []driver.Block
	grants  []lease.Grant // all grants seen, including those that are over
	seconds secondsOf     // granted and not returned
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
	g, err := m.store.Acquire(context.Background(), r)
	for _, b := range m.blocks {
		if b.Nonce == r.Nonce && err == nil && equal(g, b.Grant()) {
			return // it may be given its grant again, or another block
		}
	}
	free := 0
	for i, b := range m.blocks {
		next, refusal := b.Acquire(r)
		if refusal != nil {
			continue
		}
		free++
		if err == nil && g.Node == b.Node {
			if !equal(g, next.Grant()) && !shorter(pin(g), pin(next.Grant())) {
				t.Fatalf("acquire: got %+v, want %+v", g, next.Grant())
			}
			next.GrantedUntil = g.End
			m.blocks[i] = next
			m.grants = append(m.grants, g)
			if other, overlaps := m.seconds.add(g.Lease); overlaps {
				t.Fatalf("granted twice: %+v and %+v", g.Lease, other)
			}
			return
		}
	}
	if free > 0 || !errors.Is(err, lease.ErrNoFreeNode) {
		t.Fatalf("acquire at %s: got %+v, %v; %d of %+v are free", r.Now, g, err, free, m.blocks)
	}
}

// some returns a grant seen before, sometimes changed.
func (m *machine) some(t *rapid.T) (lease.Grant, int) {
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
		g = m.blocks[must(few.Index(g.Node))].Grant() // the newest one, possibly another holder's
	}
	return g, must(few.Index(g.Node))
}

func must(i int, err error) int {
	if err != nil {
		panic(err) // every grant added has a block
	}
	return i
}

func (m *machine) renew(t *rapid.T) {
	g, i := m.some(t)
	r := renewal(m.nonce(t, g), m.skewed(t).Add(m.step(t)))
	got, err := m.store.Renew(context.Background(), g, r)
	after, want := m.blocks[i].Renew(g, r)
	sameError(t, "renew", err, want)
	if want != nil {
		return
	}
	if !equal(got, after.Grant()) {
		t.Fatalf("renew: got %+v, want %+v", got, after.Grant())
	}
	if before := m.blocks[i]; after.GrantedUntil.After(before.GrantedUntil) {
		longer := after.Grant().Lease
		longer.Start = before.GrantedUntil
		if other, overlaps := m.seconds.add(longer); overlaps {
			t.Fatalf("granted twice: %+v and %+v", longer, other)
		}
	}
	m.blocks[i] = after
	m.grants = append(m.grants, got)
}

// nonce returns a new nonce, or sometimes that of the block's last write, as in a repeated
// message.
func (m *machine) nonce(t *rapid.T, g lease.Grant) string {
	if b := m.blocks[must(few.Index(g.Node))]; b.Nonce != "" && rapid.IntRange(0, 4).Draw(t, "repeat") == 0 {
		return b.Nonce
	}
	return lease.NewNonce()
}

func (m *machine) release(t *rapid.T) {
	g, i := m.some(t)
	unused, nonce := m.skewed(t), m.nonce(t, g)
	err := m.store.Release(context.Background(), g, nonce, unused)
	next, want := m.blocks[i].Release(g, nonce, unused)
	sameError(t, "release", err, want)
	if want != nil {
		return
	}
	m.blocks[i] = next
	kept := m.seconds[g.Node][:0]
	for _, l := range m.seconds[g.Node] {
		if l.Start.Before(next.GrantedUntil) {
			if l.End.After(next.GrantedUntil) {
				l.End = next.GrantedUntil
			}
			kept = append(kept, l)
		}
	}
	m.seconds[g.Node] = kept
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
	for i, b := range m.blocks {
		m.blocks[i] = b.Raise(until)
	}
}

func (m *machine) compare(t *rapid.T) {
	blocks, err := m.store.(lease.Admin).List(context.Background())
	if err != nil {
		t.Fatalf("list: %v", err)
	}
	for _, want := range m.blocks {
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

func sameError(t *rapid.T, what string, got, want error) {
	if judge(got) != judge(want) || judge(got) == unanswered {
		t.Fatalf("%s: got error %v, want %v", what, got, want)
	}
}
