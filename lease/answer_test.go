package lease_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/traceflake/traceflake/internal/protocol"
	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/randflake"
)

// Tests of a Keeper's conclusions from a store's responses to its renewals and releases.

// twiceRenewed returns a Keeper with a grant of version 3 whose next renewal is due.
func twiceRenewed(t *testing.T, opts ...lease.Option) (b *bench, mine lease.Grant) {
	t.Helper()
	b = newBench(t, opts...)
	b.pass(11 * time.Second)
	mine = b.Term().Grant()
	if mine.Version != 3 {
		t.Fatalf("the version is %d, want 3", mine.Version)
	}
	b.store.calls = nil
	b.clock.Add(4 * time.Second)
	return b, mine
}

// answer has the store respond to renewals and Gets. Renewals get no response if renew is nil, and
// Gets are the store's own if get is nil.
func (b *bench) answer(renew func(g lease.Grant, nonce string) (lease.Grant, error),
	get func() (lease.Grant, error)) {
	b.store.on = func(c *call, do func() (lease.Grant, error)) (lease.Grant, error) {
		switch {
		case c.op == "renew" && renew == nil:
			return lease.Grant{}, errAway
		case c.op == "renew":
			return renew(c.grant, c.request.Nonce)
		case c.op == "get" && get != nil:
			return get()
		}
		return do()
	}
}

// proposed returns the nonces of the renewals so far.
func (b *bench) proposed() (nonces []string) {
	for _, c := range b.store.asked("renew") {
		nonces = append(nonces, c.request.Nonce)
	}
	return nonces
}

func refused(lease.Grant, string) (lease.Grant, error) { return lease.Grant{}, lease.ErrLost }

func ahead(lease.Grant, string) (lease.Grant, error) { return lease.Grant{}, lease.ErrClockAhead }

func away() (lease.Grant, error) { return lease.Grant{}, errAway }

// Each kind of answer to a renewal; TestMeaning has all blocks that a Get may return. Two renewals
// are proposed: the first gets no answer, the second that of the row.
func TestAnswers(t *testing.T) {
	const (
		goesOn  = "" // with its present end
		extends = "extends"
	)
	// later returns the block as it was confirmed, with a later version, end and another nonce.
	later := func(g lease.Grant, nonce string, versions uint64, d time.Duration) lease.Grant {
		g.Nonce, g.Version, g.End = nonce, g.Version+versions, g.End.Add(d)
		return g
	}
	yes := func(versions uint64, d time.Duration) func(lease.Grant, string) (lease.Grant, error) {
		return func(g lease.Grant, next string) (lease.Grant, error) {
			return later(g, next, versions, d), nil
		}
	}
	unwritten := func(g lease.Grant, _ string) lease.Grant { return g }
	written := func(g lease.Grant, second string) lease.Grant {
		return later(g, second, 1, 5*time.Second)
	}
	byAnother := func(versions uint64, nonce string) func(lease.Grant, string) lease.Grant {
		return func(g lease.Grant, _ string) lease.Grant {
			return later(g, nonce, versions, time.Hour)
		}
	}
	for _, tt := range []struct {
		name  string
		renew func(g lease.Grant, next string) (lease.Grant, error) // nil: no answer
		get   func(g lease.Grant, second string) lease.Grant        // nil: no answer
		want  string                                                // extends, goesOn or a reason
	}{
		{"yes", yes(1, 5*time.Second), nil, extends},
		{"yes, and the end stays", yes(1, 0), nil, goesOn},
		{"yes, with an older version", yes(^uint64(0), 5*time.Second), nil, "store_contradiction"},
		{"yes, with an earlier end", yes(1, -time.Second), nil, "store_contradiction"},
		{"no answer to either", nil, nil, goesOn},
		{"lost, then no answer", refused, nil, goesOn},
		{"the clock is ahead", ahead, unwritten, goesOn},
		{"not written", nil, unwritten, goesOn},
		{"lost, but not written", refused, unwritten, goesOn},
		{"written, without an answer", nil, written, extends},
		{"written, although it was lost", refused, written, "cloned"},
		{"raised", refused, byAnother(1, ""), goesOn},
		{"raised after another write", refused, byAnother(2, ""), "raised"},
		{"written by another", refused, byAnother(1, protocol.NewNonce()), "cloned"},
		{"granted again", refused, func(g lease.Grant, _ string) lease.Grant {
			g.Start = g.Start.Add(40 * time.Second)
			return later(g, protocol.NewNonce(), 2, time.Hour)
		}, "taken"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b, mine := twiceRenewed(t)
			term := b.Term()
			b.answer(nil, away)
			b.next()
			get := away
			if tt.get != nil {
				get = func() (lease.Grant, error) { return tt.get(mine, b.proposed()[1]), nil }
			}
			b.answer(tt.renew, get)
			b.next()
			if n := len(b.proposed()); n != 2 {
				t.Fatalf("%d renewals were tried, want 2", n)
			}
			end, drops := mine.End, map[string]int64{}
			switch tt.want {
			case extends:
				end = end.Add(5 * time.Second)
			case goesOn:
			default:
				drops[tt.want] = 1
			}
			b.wantDrops(drops)
			over := len(drops) > 0
			said := errors.Join(b.reports...)
			if term.Over() != over || errors.Is(said, lease.ErrCloned) != (tt.want == "cloned") {
				t.Errorf("over %v, reported: %v", term.Over(), said)
			}
			if text := "a grant until " + mine.End.Format(time.RFC3339) +
				" that it acknowledged; is it an old copy"; tt.want == "store_contradiction" &&
				!strings.Contains(said.Error(), text) {
				t.Errorf("reported %v, want %q", said, text)
			}
			// The generator generates IDs until the end, unless it was sealed.
			b.clock.Add(end.Sub(b.clock.Now()) - time.Second)
			if _, err := term.Generator().Next(); (err == nil) == over {
				t.Errorf("in the last second: %v", err)
			}
			b.clock.Add(time.Second)
			if id, err := term.Generator().Next(); err == nil {
				t.Errorf("made %v after the end", testCodec.Decode(id))
			}
		})
	}
}

// An attempt that was not written stays pending: its message may still arrive. Each attempt has
// its own nonce.
func TestUnwrittenStaysPending(t *testing.T) {
	b, mine := twiceRenewed(t)
	b.answer(nil, nil)
	const tries = 7 // the last ones are 1.25 s apart
	before := b.clock.Elapsed()
	for range tries {
		b.next() // Get shows the old state
	}
	if took := b.clock.Elapsed() - before; took < 4*time.Second {
		t.Errorf("%d renewals in %s", tries, took)
	}
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
	if got, nonces := b.Term().Grant(), b.proposed(); len(nonces) != tries+2 ||
		got.Nonce != nonces[tries+1] || got.Version != late.Version+1 {
		t.Errorf("after %d attempts the grant is %+v", len(nonces), got)
	}
	// If it is never acknowledged, it is repeated more and more rarely.
	b.store.set(nil, errAway)
	if b.pass(10 * time.Second); len(b.proposed()) > tries+25 {
		t.Errorf("%d renewals in 10 s", len(b.proposed())-tries-2)
	}
}

// A confirmed state ends all earlier proposals.
func TestConfirmedClearsPending(t *testing.T) {
	b, _ := twiceRenewed(t)
	b.answer(nil, nil)
	b.next()
	b.store.on = nil
	b.next()
	term := b.Term()
	b.answer(refused, func() (lease.Grant, error) {
		g := term.Grant()
		g.Nonce, g.Version = b.proposed()[0], g.Version+1
		return g, nil
	})
	b.pass(6 * time.Second)
	if got := b.Drops(); !term.Over() || got["cloned"] == 0 || got["taken"] != 0 {
		t.Errorf("dropped %v", got)
	}
}

// After a raise a grant is neither renewed nor released. It is used until another one is granted,
// or until its end.
func TestRaised(t *testing.T) {
	for _, full := range []bool{false, true} {
		b := newBench(t)
		b.SetJitter(func() float64 { return 0 }) // renewals well before the end
		b.pass(0)
		first := b.Term()
		if full {
			b.takeOthers()
		}
		must(b.memory.Raise(t.Context(), testStart))
		raised := b.block(0)
		if full {
			b.store.away = lease.ErrNoFreeNode
			b.store.on = func(c *call, do func() (lease.Grant, error)) (lease.Grant, error) {
				if c.op == "acquire" {
					return do()
				}
				b.store.set(nil, nil)
				defer b.store.set(lease.ErrNoFreeNode, nil)
				return do()
			}
		}
		b.pass(5 * time.Second)
		if text := errors.Join(b.reports...).Error(); !strings.Contains(text,
			"node 0: an operator raised the store") {
			t.Errorf("reported %s", text)
		}
		if full {
			b.wantNode(0)
			b.pass(5 * time.Second)
			b.wantError(randflake.ErrLeaseExpired)
		} else {
			b.wantNode(1)
		}
		if !first.Over() {
			t.Error("the raised grant is still used")
		}
		b.close()
		b.wantBlock(raised)
		calls := map[string]int{} // about node 0
		for _, c := range b.store.calls {
			if c.grant.Nodes > 0 && c.grant.Node == 0 {
				calls[c.op]++
			}
		}
		if len(calls) != 1 || calls["renew"] != 1 {
			t.Errorf("no other free: %t, %v about the raised grant, want one renewal", full, calls)
		}
	}
}

// A block that is granted again before the end of its raised grant, as a store may whose backup was
// restored, is used by neither grant.
func TestRaisedIsGrantedAgain(t *testing.T) {
	b := newHeld(t)
	first := b.Term()
	must(b.memory.Raise(t.Context(), testStart))
	b.store.on = func(c *call, do func() (lease.Grant, error)) (lease.Grant, error) {
		g, err := do()
		if c.op == "acquire" {
			g.Node = 0
		}
		return g, err
	}
	b.pass(5 * time.Second)
	b.wantNode(0)
	b.Step(t.Context())
	if b.wantError(lease.ErrNoLease); b.Term() != nil || !first.Over() {
		t.Error("a grant is left")
	}
	b.wantDrops(map[string]int64{"cloned": 1})
}

// unproven returns a Keeper whose first grant was raised and is still used, and whose next Acquire
// was repeated, since its response was lost. At each renewal of what that found, renewed is called.
func unproven(t *testing.T, renewed func(*bench)) (b *bench, first *lease.Term) {
	t.Helper()
	b = newHeld(t)
	first = b.Term()
	must(b.memory.Raise(t.Context(), testStart))
	b.store.set(nil, errAway)
	b.pass(5 * time.Second)
	b.Step(t.Context())
	b.store.set(nil, nil)
	b.during("renew", func() { renewed(b) })
	b.pass(time.Second)
	return b, first
}

// A grant that was found with a repeated nonce, and raised before it was proven, is never used: the
// earlier one is, until another is acquired.
func TestUnprovenIsRaised(t *testing.T) {
	var found uint32
	b, first := unproven(t, func(b *bench) {
		found = b.Term().Grant().Node
		must(b.memory.Raise(t.Context(), testStart))
		b.wantNode(0)
	})
	if found == 0 || b.mustOne().Node == found || !b.Term().Proven() || !first.Over() {
		t.Errorf("node %d was found; made an ID of node %d, the first grant is over: %t", found,
			b.mustOne().Node, first.Over())
	}
}

// An unproven grant generates no IDs, even after the end of the earlier one.
func TestUnprovenIsNotUsed(t *testing.T) {
	b, first := unproven(t, func(b *bench) { b.store.set(errAway, nil) })
	b.wantNode(0)
	b.clock.Add(first.Grant().End.Sub(b.clock.Now()))
	b.Step(t.Context())
	if b.Term() == nil || b.Term().Proven() || b.Term().Over() || b.Published() != nil {
		t.Fatal("want an unproven grant that is not used")
	}
	b.wantError(randflake.ErrLeaseExpired)
}
