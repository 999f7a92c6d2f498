package lease_test

import (
	"errors"
	"slices"
	"strings"
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
	for name, tt := range map[string]struct {
		refusal error         // of the renewal; nil: it returns the block
		version uint64        // of the block; 0: it cannot be read
		moved   time.Duration // the block's start
		other   bool          // it was granted to another process
		want    string        // what happens to the grant, or the reason why it is dropped
	}{
		"yes":                        {nil, 4, 0, false, "extended"},
		"yes, with an older version": {nil, 2, 0, false, "store_contradiction"},
		"no answer to either":        {errAway, 0, 0, false, "kept"},
		"written, without an answer": {errAway, 4, 0, false, "extended"},
		"written by a copy":          {lease.ErrLost, 4, 0, false, "cloned"},
		"granted again":              {lease.ErrLost, 5, 40 * time.Second, true, "taken"},
		"granted to another before":  {lease.ErrLost, 5, 0, true, "store_contradiction"},
	} {
		b, mine := twiceRenewed(t)
		term := b.Term()
		b.store.on = fails(errAway)
		b.next()
		b.store.on = func(c *call) {
			c.grant.Nonce, c.grant.Version = b.proposed()[1], tt.version
			if tt.other {
				c.grant.Acquired = lease.NewNonce()
			}
			c.grant.Start, c.grant.End = mine.Start.Add(tt.moved), mine.End.Add(5*time.Second)
			if c.err = tt.refusal; c.op == "get" && tt.version > 0 {
				c.err = nil
			}
		}
		b.next()
		if n := len(b.proposed()); n != 2 {
			t.Fatalf("%s: %d renewals were tried, want 2", name, n)
		}
		b.store.on = fails(errAway)
		b.Step(t.Context()) // reports why the grant was dropped
		end, over := mine.End, false
		switch tt.want {
		case "kept":
			b.wantDrops()
		case "extended":
			b.wantDrops()
			end = end.Add(5 * time.Second)
		default:
			b.wantDrops(tt.want)
			over = true
		}
		said := errors.Join(b.reports...)
		if term.Over() != over || errors.Is(said, lease.ErrCloned) != (tt.want == "cloned") {
			t.Errorf("%s: over %v, reported: %v", name, term.Over(), said)
		}
		if text := "it lacks a lease until " + mine.End.Format(time.RFC3339) +
			" that it acknowledged. IDs generated since " + term.Seen().UTC().Format(time.RFC3339) +
			" in its history " + mine.Store + " may be equal. "; tt.want ==
			"store_contradiction" && !strings.Contains(said.Error(), text) {
			t.Errorf("reported %v, want %q", said, text)
		}
		// The generator generates IDs until the end, unless it was sealed.
		b.clock.Add(end.Sub(b.clock.Now()) - time.Second)
		if _, err := term.Generator().Next(); (err == nil) == over {
			t.Errorf("%s: in the last second: %v", name, err)
		}
		b.clock.Add(time.Second)
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
	const tries = 7 // the last ones are 1.25 s apart
	before := b.clock.elapsed
	for range tries {
		b.next() // Get shows the old state
	}
	if took := b.clock.elapsed - before; took < 4*time.Second {
		t.Errorf("%d renewals in %s", tries, took)
	}
	b.wantReports(errAway)
	nonces := b.proposed()
	if slices.Sort(nonces); len(slices.Compact(nonces)) != tries {
		t.Fatalf("nonces %q", nonces)
	}
	r := lease.Request{Nonce: b.proposed()[0], Now: mine.End, TTL: 7 * time.Second}
	late := must(b.memory.Renew(t.Context(), mine, r))
	b.store.on = nil
	wait := b.Step(t.Context()) // refused, and Get shows that the first one was written
	if got := b.Term().Grant(); got != late || len(b.proposed()) != tries+1 {
		t.Fatalf("after %d attempts the grant is %+v, want %+v", len(b.proposed()), got, late)
	}
	// A copy may have sent it too, so the next renewal follows soon.
	if b.clock.Add(wait); wait > time.Second {
		t.Errorf("the next renewal is in %s", wait)
	}
	b.Step(t.Context())
	mine = b.Term().Grant()
	if nonces := b.proposed(); len(nonces) != tries+2 || mine.Nonce != nonces[tries+1] ||
		mine.Version != late.Version+1 {
		t.Errorf("after %d attempts the grant is %+v", len(nonces), mine)
	}
	// If it is never acknowledged, it is repeated more and more rarely.
	b.store.on = loses
	if b.pass(10 * time.Second); len(b.proposed()) > tries+25 {
		t.Errorf("%d renewals in 10 s", len(b.proposed())-tries-2)
	}
	b.wantDrops()
	b.store.on = func(c *call) {
		c.err = lease.ErrLost
		if c.op == "get" {
			c.grant.Nonce, c.err = b.proposed()[0], nil
			c.grant.Version++
		}
	}
	b.pass(time.Second)
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
	if b.Term() == nil || b.Term().Proven() || b.Term().Over() || b.Published() != nil {
		t.Fatal("want an unproven grant that is not used")
	}
	b.wantError(lease.ErrNoLease)
	b.store.on = nil
	b.pass(2 * time.Second)
	b.wantNode(0)
}
