package lease_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/traceflake/traceflake/lease"
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

func replaced(lease.Grant, string) (lease.Grant, error) { return lease.Grant{}, lease.ErrReplaced }

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
	for _, tt := range []struct {
		name  string
		renew func(g lease.Grant, next string) (lease.Grant, error) // nil: no answer
		get   func(g lease.Grant, second string) lease.Grant        // nil: no answer
		want  string                                                // extends, goesOn or a reason
	}{
		{"yes", yes(1, 5*time.Second), nil, extends},
		{"yes, and the end stays", yes(1, 0), nil, goesOn},
		{"yes, with an older version", yes(^uint64(0), 5*time.Second), nil, "store_contradiction"},
		{"no answer to either", nil, nil, goesOn},
		{"not written", nil, unwritten, goesOn},
		{"written, without an answer", nil, written, extends},
		{"written, although it was lost", refused, written, "cloned"},
		{"another history", replaced, unwritten, goesOn},
		{"granted again", refused, func(g lease.Grant, _ string) lease.Grant {
			g.Start = g.Start.Add(40 * time.Second)
			return later(g, lease.NewNonce(), 2, time.Hour)
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
			b.answer(nil, away)
			b.Step(t.Context())
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

// A grant that was found with a repeated nonce generates no IDs before it is renewed: a copy of
// this process may have found it, too.
func TestUnprovenIsNotUsed(t *testing.T) {
	b := newBench(t)
	b.store.set(nil, errAway)
	b.Step(t.Context())
	b.store.set(nil, nil)
	b.during("renew", func() { b.store.set(errAway, nil) })
	b.pass(time.Second)
	if b.Term() == nil || b.Term().Proven() || b.Term().Over() || b.Published() != nil {
		t.Fatal("want an unproven grant that is not used")
	}
	b.wantError(lease.ErrNoLease)
	b.store.on = nil
	b.store.set(nil, nil)
	b.pass(2 * time.Second)
	b.wantNode(0)
}
