package lease_test

import (
	"context"
	"errors"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/driver"
	"github.com/traceflake/traceflake/randflake"
)

// scripted is a store whose answers to renewals and Gets are set by the test.
type scripted struct {
	*flakyStore
	nonces []string    // proposed by renewals
	about  lease.Grant // of the last renewal
	renew  func(g lease.Grant, next string) (lease.Grant, error)
	get    func(g lease.Grant) (lease.Grant, error)
}

func (s *scripted) Renew(ctx context.Context, g lease.Grant, r lease.Request) (lease.Grant, error) {
	s.about, s.nonces = g, append(s.nonces, r.Nonce)
	if s.renew != nil {
		return s.renew(g, r.Nonce)
	}
	return s.flakyStore.Renew(ctx, g, r)
}

func (s *scripted) Get(ctx context.Context, node uint32) (lease.Grant, error) {
	if s.get != nil {
		return s.get(s.about)
	}
	return s.flakyStore.Get(ctx, node)
}

// TestAnswers has each row of the table of answers. Two renewals are proposed: the first gets no
// answer, the second the one in the row.
func TestAnswers(t *testing.T) {
	const (
		goesOn  = "" // with its present end
		extends = "extends"
		raised  = "raised"
	)
	stranger := lease.NewNonce()
	lost := func(lease.Grant, string) (lease.Grant, error) { return lease.Grant{}, lease.ErrLost }
	noAnswer := func(lease.Grant, string) (lease.Grant, error) { return lease.Grant{}, errAway }
	// block returns the block as it was confirmed, with a later version and another nonce.
	block := func(g lease.Grant, nonce string, versions uint64) lease.Grant {
		g.Nonce, g.Version = nonce, g.Version+versions
		return g
	}
	moved := func(g lease.Grant) lease.Grant {
		g.Start, g.End = g.Start.Add(40*time.Second), g.End.Add(40*time.Second)
		return g
	}
	longer := func(g lease.Grant, d time.Duration) lease.Grant {
		g.End = g.End.Add(d)
		return g
	}
	yes := func(versions uint64, d time.Duration) func(lease.Grant, string) (lease.Grant, error) {
		return func(g lease.Grant, next string) (lease.Grant, error) {
			return longer(block(g, next, versions), d), nil
		}
	}
	for _, tt := range []struct {
		name  string
		renew func(g lease.Grant, next string) (lease.Grant, error)
		get   func(g lease.Grant, first, second string) lease.Grant // nil: no answer
		want  string
	}{
		{"yes", yes(1, 5*time.Second), nil, extends},
		{"yes, and the end stays", yes(1, 0), nil, goesOn},
		{"yes, with an older version", yes(^uint64(0), 5*time.Second), nil, "store_contradiction"},
		{"yes, with an earlier end", yes(1, -time.Second), nil, "store_contradiction"},
		{"no answer to either", noAnswer, nil, goesOn},
		{"lost, then no answer", lost, nil, goesOn},
		{"not written", noAnswer, func(g lease.Grant, _, _ string) lease.Grant { return g }, goesOn},
		{"lost, but not written", lost, func(g lease.Grant, _, _ string) lease.Grant { return g }, goesOn},
		{"an older version", noAnswer, func(g lease.Grant, _, _ string) lease.Grant { g.Version--; return g }, "store_contradiction"},
		{"an earlier end", noAnswer, func(g lease.Grant, _, second string) lease.Grant {
			return longer(block(g, second, 1), -time.Second)
		}, "store_contradiction"},
		{"my nonce, an earlier end", noAnswer, func(g lease.Grant, _, _ string) lease.Grant { return longer(g, -time.Second) }, "store_contradiction"},
		{"my nonce, a newer version", lost, func(g lease.Grant, _, _ string) lease.Grant { return longer(block(g, g.Nonce, 1), 5*time.Second) }, "taken"},
		{"my nonce, another start", lost, func(g lease.Grant, _, _ string) lease.Grant { return moved(g) }, "taken"},
		{"my nonce, another start and version", lost, func(g lease.Grant, _, _ string) lease.Grant { return moved(block(g, g.Nonce, 2)) }, "taken"},
		{"the nonce that was lost", lost, func(g lease.Grant, _, second string) lease.Grant {
			return longer(block(g, second, 1), 5*time.Second)
		}, "cloned"},
		{"this nonce, without an answer", noAnswer, func(g lease.Grant, _, second string) lease.Grant {
			return longer(block(g, second, 1), 5*time.Second)
		}, extends},
		{"an earlier nonce", lost, func(g lease.Grant, first, _ string) lease.Grant {
			return longer(block(g, first, 1), 5*time.Second)
		}, extends},
		{"an earlier nonce, and a later write", lost, func(g lease.Grant, first, _ string) lease.Grant {
			return longer(block(g, first, 2), 5*time.Second)
		}, "cloned"},
		{"an earlier nonce, another start", lost, func(g lease.Grant, first, _ string) lease.Grant { return moved(block(g, first, 1)) }, "taken"},
		{"raised", lost, func(g lease.Grant, _, _ string) lease.Grant { return longer(block(g, "", 1), time.Hour) }, raised},
		{"raised, but not past my end", lost, func(g lease.Grant, _, _ string) lease.Grant { return block(g, "", 1) }, raised},
		{"raised after another write", lost, func(g lease.Grant, _, _ string) lease.Grant { return longer(block(g, "", 2), time.Hour) }, "taken"},
		{"emptied, an earlier end", lost, func(g lease.Grant, _, _ string) lease.Grant { return longer(block(g, "", 1), -time.Second) }, "store_contradiction"},
		{"another's nonce", lost, func(g lease.Grant, _, _ string) lease.Grant { return longer(block(g, stranger, 1), 5*time.Second) }, "cloned"},
		{"a foreign nonce, my version", lost, func(g lease.Grant, _, _ string) lease.Grant { return block(g, stranger, 0) }, "cloned"},
		{"a foreign nonce, another start", lost, func(g lease.Grant, _, _ string) lease.Grant { return moved(block(g, stranger, 2)) }, "taken"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b, store := twiceRenewed(t)
			term, mine := b.Terms()[0], b.Terms()[0].Grant()
			store.renew, store.get = noAnswer, func(lease.Grant) (lease.Grant, error) { return lease.Grant{}, errAway }
			b.next()
			store.renew = tt.renew
			if tt.get != nil {
				store.get = func(g lease.Grant) (lease.Grant, error) {
					return tt.get(mine, store.nonces[0], store.nonces[1]), nil
				}
			}
			b.next()
			if len(store.nonces) != 2 {
				t.Fatalf("%d renewals were tried, want 2", len(store.nonces))
			}
			wantEnd, drops := mine.End, map[string]int64{}
			switch tt.want {
			case extends:
				wantEnd = wantEnd.Add(5 * time.Second)
			case goesOn, raised:
			default:
				drops[tt.want] = 1
			}
			if got := b.Drops(); !maps.Equal(got, drops) || b.Generation() != uint64(len(drops)) || term.Over() != (len(drops) > 0) {
				t.Errorf("dropped %v, generation %d, over %v; want %v", got, b.Generation(), term.Over(), drops)
			}
			isClone, said := false, errors.Join(b.reports...)
			for _, err := range b.reports {
				isClone = isClone || errors.Is(err, lease.ErrCloned)
			}
			if isClone != (tt.want == "cloned") {
				t.Errorf("reported: %v", said)
			}
			if want := "a grant until " + mine.End.Format(time.RFC3339) + " that it acknowledged; is it an old copy"; tt.want == "store_contradiction" && !strings.Contains(said.Error(), want) {
				t.Errorf("reported %v, want %q", said, want)
			}
			store.renew, store.get = noAnswer, func(lease.Grant) (lease.Grant, error) { return lease.Grant{}, errAway }
			b.store.set(errAway, nil)
			b.clock.Add(wantEnd.Sub(b.clock.Now()) - time.Second)
			if _, err := term.Generator().Next(); (err == nil) == (len(drops) > 0) {
				t.Errorf("in the last second: %v", err)
			}
			b.clock.Add(time.Second)
			if id, err := term.Generator().Next(); err == nil {
				t.Errorf("made %v after the end", b.codec.Decode(id))
			}
		})
	}
}

// twiceRenewed returns a Keeper with a grant of version 3 whose next renewal is due.
func twiceRenewed(t *testing.T) (*bench, *scripted) {
	t.Helper()
	b := newBench(t)
	store := &scripted{flakyStore: b.store}
	b.SetStore(store)
	b.pass(11 * time.Second)
	if len(store.nonces) != 2 || b.Terms()[0].Grant().Version != 3 {
		t.Fatalf("%d renewals, version %d", len(store.nonces), b.Terms()[0].Grant().Version)
	}
	store.nonces = nil
	b.clock.Add(4 * time.Second)
	return b, store
}

// next takes the next step at the time when it is due.
func (b *bench) next() {
	b.t.Helper()
	b.clock.Add(b.Step(b.t.Context()))
}

// An attempt that was not written stays pending: its message may still arrive. Each attempt has
// its own nonce.
func TestUnwrittenStaysPending(t *testing.T) {
	b, store := twiceRenewed(t)
	mine := b.Terms()[0].Grant()
	store.renew = func(lease.Grant, string) (lease.Grant, error) { return lease.Grant{}, errAway }
	for range 3 {
		b.next() // Get shows the old state
	}
	if len(store.nonces) != 3 || store.nonces[0] == store.nonces[1] || store.nonces[1] == store.nonces[2] {
		t.Fatalf("nonces %q", store.nonces)
	}
	late, err := b.store.Memory.Renew(t.Context(), mine, renewal(store.nonces[0], mine.End.Add(7*time.Second)))
	if err != nil {
		t.Fatal(err)
	}
	store.renew = nil
	if wait := b.Step(t.Context()); wait != 0 { // refused, and Get shows that the first one was written
		t.Errorf("the next renewal is in %s, want it at once", wait)
	}
	if got := b.Terms()[0].Grant(); got != late || len(store.nonces) != 4 {
		t.Fatalf("after %d attempts the grant is %+v, want %+v", len(store.nonces), got, late)
	}
	// A copy may have sent it too, so the next renewal follows at once.
	b.Step(t.Context())
	if got := b.Terms()[0].Grant(); len(store.nonces) != 5 || got.Nonce != store.nonces[4] || got.Version != late.Version+1 {
		t.Errorf("after %d attempts the grant is %+v", len(store.nonces), got)
	}
}

// A confirmed state ends all earlier proposals.
func TestConfirmedClearsPending(t *testing.T) {
	b, store := twiceRenewed(t)
	store.renew = func(lease.Grant, string) (lease.Grant, error) { return lease.Grant{}, errAway }
	b.next()
	old := store.nonces[0]
	store.renew = nil
	b.next()
	store.renew = func(lease.Grant, string) (lease.Grant, error) { return lease.Grant{}, lease.ErrLost }
	store.get = func(g lease.Grant) (lease.Grant, error) {
		g.Nonce, g.Version = old, g.Version+1
		return g, nil
	}
	term := b.Terms()[0]
	b.pass(6 * time.Second)
	if got := b.Drops(); !term.Over() || got["cloned"] == 0 || got["taken"] != 0 {
		t.Errorf("dropped %v", got)
	}
}

// An unproven grant makes no IDs, even when another one is dropped.
func TestUnprovenIsNotShown(t *testing.T) {
	b := newBench(t, lease.WithMaxBlocks(2))
	b.pass(0)
	ids := make([]randflake.ID, 1<<17)
	for range 2 {
		_, _, _ = b.Fill(ids)
	}
	b.store.set(nil, errAway)
	b.Step(t.Context())
	b.store.set(nil, nil)
	b.SetStore(&scripted{
		flakyStore: b.store,
		renew:      func(lease.Grant, string) (lease.Grant, error) { return lease.Grant{}, lease.ErrLost },
		get: func(g lease.Grant) (lease.Grant, error) {
			if g.Node == 0 {
				g.Nonce, g.Version = lease.NewNonce(), g.Version+1
				return g, nil
			}
			return g, errAway
		},
	})
	b.pass(6 * time.Second)
	if got := b.Drops(); len(b.Terms()) != 1 || b.Terms()[0].Proven() || !maps.Equal(got, map[string]int64{"cloned": 1}) {
		t.Fatalf("%d terms, dropped %v", len(b.Terms()), got)
	}
	b.wantError(lease.ErrNoLease)
}

// After a raise a grant is used until its end, but neither renewed nor released.
func TestRaisedIsNotRenewed(t *testing.T) {
	b, store := twiceRenewed(t)
	if err := b.store.Raise(t.Context(), b.clock.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	b.pass(3 * time.Second)
	if len(store.nonces) != 1 {
		t.Errorf("%d renewals were tried, want 1", len(store.nonces))
	}
	b.mustOne()
	before := b.block(0)
	b.Seal()
	if err := b.GiveBackAll(t.Context()); err != nil {
		t.Error(err)
	}
	if after := b.block(0); after != before {
		t.Errorf("the block became %+v", after)
	}
}

// A grant from a repeated nonce makes no IDs until the store has acknowledged a renewal: a copy of
// this process may have got the grant too.
func TestRepeatedAcquireIsProven(t *testing.T) {
	b := newBench(t)
	store := &scripted{flakyStore: b.store}
	b.SetStore(store)
	b.store.set(nil, errAway)
	b.next()
	b.store.set(nil, nil)
	refused := true
	store.renew = func(g lease.Grant, next string) (lease.Grant, error) {
		if refused {
			return lease.Grant{}, errAway
		}
		return b.store.Renew(t.Context(), g, renewal(next, b.clock.Now().Add(10*time.Second)))
	}
	b.next()
	b.wantError(lease.ErrNoLease)
	if len(b.Terms()) != 1 || len(store.nonces) != 1 {
		t.Fatalf("%d terms, %d renewals", len(b.Terms()), len(store.nonces))
	}
	// A renewal that was written but not answered is not acknowledged.
	store.renew = func(g lease.Grant, next string) (lease.Grant, error) {
		if _, err := b.store.Renew(t.Context(), g, renewal(next, g.End)); err != nil {
			t.Fatal(err)
		}
		return lease.Grant{}, errAway
	}
	b.next()
	b.wantError(lease.ErrNoLease)
	store.renew = nil
	b.next()
	b.mustOne()
	if err := b.Ready(t.Context()); err != nil {
		t.Error(err)
	}
}

// If its release is refused, a Keeper releases only a state that its own late renewal wrote.
func TestReleaseDenied(t *testing.T) {
	stranger := lease.NewNonce()
	for _, tt := range []struct {
		name     string
		nonce    func(pending string) string
		released bool
	}{
		{"a late renewal of mine", func(pending string) string { return pending }, true},
		{"a copy of me", func(string) string { return stranger }, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b, store := twiceRenewed(t)
			b.mustOne()
			mine := b.Terms()[0].Grant()
			store.renew = func(lease.Grant, string) (lease.Grant, error) { return lease.Grant{}, errAway }
			b.next()
			stored, err := b.store.Memory.Renew(t.Context(), mine, renewal(tt.nonce(store.nonces[0]), mine.End.Add(9*time.Second)))
			if err != nil {
				t.Fatal(err)
			}
			b.Seal()
			err = b.GiveBackAll(t.Context())
			block := b.block(0)
			if tt.released {
				if err != nil || block.Owner != "" || block.Version != stored.Version+1 || !block.GrantedUntil.Before(mine.End) {
					t.Errorf("%v, the block is %+v", err, block)
				}
			} else if !errors.Is(err, lease.ErrLost) || block.Version != stored.Version || block.Nonce != stored.Nonce {
				t.Errorf("%v, the block is %+v", err, block)
			}
		})
	}
}

// A Keeper returns the seconds after its last ID, even if it has borrowed.
func TestUsedSecondsAreNotReturned(t *testing.T) {
	b := newBench(t)
	b.pass(0)
	ids := make([]randflake.ID, 1<<17)
	var last time.Time
	for range 2 {
		_, second, err := b.Fill(ids)
		if err != nil {
			t.Fatal(err)
		}
		last = second
	}
	if !last.After(b.clock.Now()) {
		t.Fatalf("nothing was borrowed until %s", last)
	}
	b.Seal()
	if err := b.GiveBackAll(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got, want := b.block(0).GrantedUntil, last.Add(time.Second); !got.Equal(want) {
		t.Errorf("returned from %s, want %s", got, want)
	}
}

// made records the process that made each ID.
type made map[randflake.ID]string

// fill makes IDs with a Keeper, and fails if one was made before. It returns how many were made.
func (m made) fill(t *testing.T, name string, b *bench) int {
	t.Helper()
	ids := make([]randflake.ID, 3)
	n, _, _ := b.Fill(ids)
	for _, id := range ids[:n] {
		if other, twice := m[id]; twice {
			t.Fatalf("%s made the ID %+v, which %s had made", name, b.codec.Decode(id), other)
		}
		m[id] = name
	}
	return n
}

// A late Acquire grants the block again, with a nonce that its sender used before: the sender must
// not mistake that for a renewal of its grant. The clock is set back between the Acquire and its
// repetition.
func TestLateAcquire(t *testing.T) {
	p, q := newBench(t, lease.WithMaxBlocks(1)), newBench(t, lease.WithMaxBlocks(1))
	p.store.Memory = driver.NewMemory(driver.WithNodeRange(driver.NodeRange{Nodes: 1, BlockSize: 1}))
	q.store.Memory = p.store.Memory
	var late func() // makes P's first Acquire
	p.SetStore(hooked{p.store, func(c call, do func(call) (lease.Grant, error)) (lease.Grant, error) {
		if late == nil {
			late = func() { _, _ = p.store.Memory.Acquire(context.Background(), c.request) }
			return lease.Grant{}, errAway
		}
		return do(c)
	}})
	ids := made{}

	p.clock.Step(40 * time.Second)
	p.next()
	p.clock.Step(-40 * time.Second)
	p.next() // is granted [0 s, 10 s)
	if ids.fill(t, "P", p) != 3 {
		t.Fatal("P has no lease")
	}
	q.clock.Add(20 * time.Second)
	q.Step(t.Context()) // is granted [20 s, 30 s)
	for range 9 {
		if ids.fill(t, "Q", q) != 3 {
			t.Fatal("Q has no lease")
		}
		q.clock.Add(time.Second)
	}
	late() // grants [40 s, 50 s) for P's first nonce
	if block := p.block(0); !block.Start.Equal(testStart.Add(40 * time.Second)) {
		t.Fatalf("after the late Acquire the block is %+v", block)
	}
	for range 60 {
		p.pass(time.Second)
		ids.fill(t, "P", p)
	}
	if got := p.Drops(); !maps.Equal(got, map[string]int64{"taken": 1}) {
		t.Errorf("dropped %v, want the first grant", got)
	}
}

// Two copies of a process renew in turn, and their clocks agree. The second one stops at the
// store's first answer and acquires another grant.
func TestCopiesSeparate(t *testing.T) {
	b := newBench(t)
	b.pass(time.Second)
	b.mustOne()
	c := b.copied()
	for range 60 {
		b.Step(t.Context())
		c.Step(t.Context())
		b.clock.Add(100 * time.Millisecond)
	}
	ids := made{}
	for range 300 {
		if ids.fill(t, "the original", b) != 3 || ids.fill(t, "the copy", c) != 3 {
			t.Fatal("one of the copies has no lease")
		}
		b.Step(t.Context())
		c.Step(t.Context())
		b.clock.Add(100 * time.Millisecond)
	}
	if got := c.Drops(); !maps.Equal(got, map[string]int64{"cloned": 1}) || c.Generation() != 1 {
		t.Errorf("the copy dropped %v, generation %d", got, c.Generation())
	}
	if len(c.reports) != 1 || !errors.Is(c.reports[0], lease.ErrCloned) {
		t.Errorf("the copy reported %v", c.reports)
	}
	if len(b.Drops()) != 0 || len(b.reports) != 0 {
		t.Errorf("the original dropped %v and reported %v", b.Drops(), b.reports)
	}
}

// Two copies of a golden image repeat the Acquire that was pending when the image was made: only
// one of them uses the grant.
func TestCopiesOfAPendingAcquire(t *testing.T) {
	b := newBench(t)
	b.store.set(nil, errAway)
	b.next()
	b.store.set(nil, nil)
	c := b.copied()
	ids := made{}
	for range 300 {
		ids.fill(t, "the original", b)
		ids.fill(t, "the copy", c)
		b.Step(t.Context())
		c.Step(t.Context())
		b.clock.Add(100 * time.Millisecond)
	}
	if b.block(0).Owner == "" || b.block(1).Owner == "" {
		t.Error("they do not have different blocks")
	}
}

// A copy returns the grant, and the other copy wins the same block as a second grant: it must not
// make the same IDs with both.
func TestOwnBlockWonAgain(t *testing.T) {
	b := newBench(t, lease.WithMaxBlocks(2))
	b.pass(time.Second)
	b.mustOne()
	c := b.copied(lease.WithMaxBlocks(2))
	b.Seal()
	if err := b.GiveBackAll(t.Context()); err != nil {
		t.Fatal(err)
	}
	b.clock.Add(time.Second)
	ids, seen := make([]randflake.ID, 1<<17), make(map[randflake.ID]bool)
	for range 4 { // busy, so that it acquires a second block
		n, _, _ := c.Fill(ids)
		for _, id := range ids[:n] {
			if seen[id] {
				t.Fatalf("ID %v was made twice: %+v", id, b.codec.Decode(id))
			}
			seen[id] = true
		}
		c.Step(t.Context())
	}
	if got := c.Drops(); got["cloned"] != 1 || len(c.reports) == 0 || !errors.Is(c.reports[0], lease.ErrCloned) {
		t.Errorf("the copy dropped %v and reported %v", got, c.reports)
	}
}

// A copy returns the grant. The other copy notices it, drops the grant and wins the same block
// again: it must not make the same IDs as before.
func TestOwnBlockWonAfterTheDrop(t *testing.T) {
	b := newBench(t)
	b.pass(time.Second)
	b.mustOne()
	c := b.copied()
	b.Seal()
	if err := b.GiveBackAll(t.Context()); err != nil {
		t.Fatal(err)
	}
	ids := made{}
	for range 100 {
		ids.fill(t, "the copy", c)
		c.Step(t.Context())
		b.clock.Add(100 * time.Millisecond)
	}
	if got := c.Drops(); !maps.Equal(got, map[string]int64{"store_contradiction": 1}) {
		t.Errorf("dropped %v", got)
	}
	c.mustOne()
}
