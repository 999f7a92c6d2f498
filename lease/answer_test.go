package lease_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/traceflake/traceflake/lease"
)

// Tests of a Keeper's conclusions from a store's responses to its renewals.

// twiceRenewed returns a Keeper with a grant of version 3 whose next renewal is due.
func twiceRenewed(t *testing.T) (b *bench, mine lease.Grant) {
	t.Helper()
	b = newBench(t)
	b.pass(11 * time.Second)
	mine = b.Term().Grant()
	if mine.Version != 3 {
		t.Fatalf("the version is %d, want 3", mine.Version)
	}
	b.store.calls = nil
	b.clock.Add(4 * time.Second)
	return b, mine
}

// proposed returns the nonces of the renewals so far.
func (b *bench) proposed() (nonces []string) {
	for _, c := range b.store.asked("renew") {
		nonces = append(nonces, c.nonce)
	}
	return nonces
}

// notSent is a connection that loses renewals.
func notSent(c *call) {
	if c.op == "renew" {
		c.err = errAway
	} else {
		c.send()
	}
}

// What follows from each kind of answer to a renewal; TestMeaning has all blocks that a store may
// have. Two renewals are proposed: the first gets no answer, the second that of the row.
func TestAnswers(t *testing.T) {
	const s = time.Second
	for name, c := range map[string]struct {
		refusal error         // of the renewal; nil: it returns the block
		version uint64        // of the block; 0: it cannot be read
		moved   time.Duration // the block's start
		extends time.Duration
		dropped []string
	}{
		"acknowledged":        {nil, 4, 0, 5 * s, nil},
		"no answer to either": {errAway, 0, 0, 0, nil},
		"written, no answer":  {errAway, 4, 0, 5 * s, nil},
		"written by a copy":   {lease.ErrLost, 4, 0, 0, []string{"cloned"}},
		"granted again":       {lease.ErrLost, 5, 40 * s, 0, []string{"taken"}},
	} {
		b, mine := twiceRenewed(t)
		term := b.Term()
		b.store.on = fails(errAway)
		b.next()
		b.store.on = func(call *call) {
			g := &call.grant
			g.Nonce, g.Version = b.proposed()[1], c.version
			g.Start, g.End = mine.Start.Add(c.moved), mine.End.Add(5*s)
			if call.err = c.refusal; call.op == "get" && c.version > 0 {
				call.err = nil
			}
		}
		b.next()
		b.store.on = fails(errAway)
		b.Step(t.Context()) // reports why the grant was dropped
		b.wantDrops(c.dropped...)
		over := len(c.dropped) > 0
		said := errors.Join(b.reports...)
		cloned := name == "written by a copy"
		if term.Over() != over || errors.Is(said, lease.ErrCloned) != cloned {
			t.Errorf("%s: over %v, reported: %v", name, term.Over(), said)
		}
		// The generator generates IDs until the end, unless it was sealed.
		b.clock.Add(mine.End.Add(c.extends - s).Sub(b.clock.Now()))
		if _, err := term.Generator().Next(); (err == nil) == over {
			t.Errorf("%s: in the last second: %v", name, err)
		}
		b.clock.Add(s)
		if id, err := term.Generator().Next(); err == nil {
			t.Errorf("%s: made %v after the end", name, id)
		}
	}
}

// An attempt that was not written stays pending until another one is acknowledged: its message may
// still arrive. Each attempt has its own nonce.
func TestUnwrittenStaysPending(t *testing.T) {
	b, mine := twiceRenewed(t)
	b.store.on = notSent
	const tries = 7
	for range tries {
		b.next() // Get shows the old state
	}
	b.wantReports(errAway)
	nonces := b.proposed()
	if slices.Sort(nonces); len(slices.Compact(nonces)) != tries {
		t.Fatalf("nonces %q", nonces)
	}
	first := b.proposed()[0]
	r := lease.Request{Nonce: first, Now: mine.End, TTL: 7 * time.Second}
	late := must(b.memory.Renew(t.Context(), mine, r))
	b.store.on = nil
	wait := b.Step(t.Context()) // refused, and Get shows that the first one was written
	if got := b.Term().Grant(); got != late {
		t.Errorf("the grant is %+v, want %+v", got, late)
	}
	b.clock.Add(wait)
	b.Step(t.Context())
	if got := b.Term().Grant(); got.Version != late.Version+1 || wait > time.Second {
		t.Errorf("a renewal that a copy may have sent, too, is repeated after %s: %+v", wait, got)
	}
	b.wantDrops()
	b.store.on = func(c *call) { // a copy writes what is pending no more
		if c.err = lease.ErrLost; c.op == "get" {
			c.grant.Nonce, c.err = first, nil
			c.grant.Version++
		}
	}
	b.pass(10 * time.Second)
	b.wantDrops("cloned")
}

// A grant that was found with a repeated nonce generates no IDs before it is renewed: a copy of
// this process may have found it, too.
func TestUnprovenIsNotUsed(t *testing.T) {
	b := newBench(t)
	b.store.on = loses
	b.Step(t.Context())
	b.store.on = notSent
	b.pass(time.Second)
	if b.Term() == nil || b.Term().Over() || b.Published() != nil {
		t.Fatal("want an unproven grant that is not used")
	}
	b.wantError(lease.ErrNoLease)
	b.store.on = nil
	b.pass(2 * time.Second)
	b.wantNode(0)
}
