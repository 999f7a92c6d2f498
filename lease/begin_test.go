package lease_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/memstore"
	"github.com/traceflake/traceflake/randflake"
)

// Tests of a Keeper whose store gets another history.

// backup returns the objects of the store.
func (b *bench) backup() map[string][]byte {
	return b.objects.Data()
}

// history returns the store's, wherever it was begun.
func (b *bench) history() lease.History {
	d, _ := b.memory.Describe(b.t.Context())
	return d.History
}

// rekey begins a history as an operator does, with a secret.
func (b *bench) rekey(secret *randflake.Codec) {
	b.t.Helper()
	must(b.memory.Begin(b.t.Context(), lease.BeginRequest{Leaves: b.history().ID,
		Reason: lease.Rekey, Now: b.clock.Now(), Secrets: testKeyring, Secret: secret}))
}

// wantBegun checks how many histories the Keeper has begun, by reason.
func (b *bench) wantBegun(moved, contradicted int) {
	b.t.Helper()
	got := map[string]int{}
	for _, c := range b.store.asked("begin") {
		if c.err == nil {
			got[c.reason]++
		}
	}
	if got[lease.Moved] != moved || got[lease.Contradicted] != contradicted {
		b.t.Errorf("began %v, want %d and %d histories", got, moved, contradicted)
	}
}

// wantText checks that one report has each text.
func (b *bench) wantText(texts ...string) {
	b.t.Helper()
	all := errors.Join(b.reports...).Error()
	for _, text := range texts {
		if strings.Count(all, text) != 1 {
			b.t.Errorf("reported\n%s\nwant %q once", all, text)
		}
	}
}

// A store that was moved, copied or restored elsewhere gets a new history from whoever renews or
// leases first. The lease of the old history is used, under its key, until there is another one,
// and ready IDs stay valid.
func TestStoreMoves(t *testing.T) {
	option, collect := metered(t)
	b := newHeld(t, option)
	old, first, former := b.Codec(), b.history(), b.Term()
	b.clock.Add(6 * time.Second)
	b.objects.Move()
	b.Step(t.Context()) // the renewal
	if b.wantNode(0); b.Codec() != old || b.Former() == nil {
		t.Error("the lease is not used after its renewal was refused")
	}
	b.pass(10 * time.Second)
	b.wantNode(0) // which nobody was granted in the new history
	second := b.history()
	key := must(lease.HistoryCodec(testCodec, second.ID))
	if id := must(b.Next()); key.Decode(id) != b.Codec().Decode(id) || b.Codec() == old {
		t.Error("an ID has another key than that of the new history")
	}
	if _, err := former.Generator().Next(); !errors.Is(err, randflake.ErrSealed) {
		t.Errorf("the former generator: %v", err)
	}
	known := b.Histories()
	if second.Reason != lease.Moved || !slices.Equal(known, []lease.History{second, first}) {
		t.Errorf("the histories are %+v", known)
	}
	b.wantDrops()
	b.wantBegun(1, 0)
	if n := collect(); n[histories+lease.Moved] != 1 || n[histories+lease.Contradicted] != 0 {
		t.Errorf("the metrics count %v begun histories", n)
	}
	b.wantText("the store's history was begun elsewhere", "nothing is to be done\nlease: the store"+
		" has a new history, "+second.ID, "(moved). Leases continue")
}

// A lease of an old history is used to its end while no other can be had, whatever becomes of a
// grant that is not proven. That the store has moved is reported once.
func TestFormerLeaseIsUsedToItsEnd(t *testing.T) {
	b := newHeld(t)
	end := b.block(0).End
	b.clock.Add(6 * time.Second)
	b.objects.Move()
	b.store.on = func(c *call) {
		switch began, acquired := len(b.store.asked("begin")), len(b.store.asked("acquire")); {
		case c.op == "begin" && began == 1:
			c.err = lease.ErrMoved
		case c.op == "renew" && began > 0, c.op == "acquire" && acquired != 3:
			loses(c) // the third one finds the grant of the second
		default:
			c.send()
		}
		if b.Term() != nil && b.Former() != nil {
			b.Drop(b.Term())
		}
	}
	for b.clock.Now().Before(end.Add(-time.Second)) {
		b.pass(100 * time.Millisecond)
		b.mustOne()
	}
	b.pass(time.Second)
	b.wantError(randflake.ErrLeaseExpired)
	if b.wantBegun(1, 0); b.Drops()["restored"] == 0 {
		t.Errorf("dropped %v", b.Drops())
	}
	if said := errors.Join(b.reports...); strings.Count(said.Error(), "is to be done") != 2 {
		t.Errorf("reported %s", said)
	}
	b.store.on = nil
	b.pass(time.Minute)
	b.mustOne()
}

// A store that was set back at its place, wholly or in part, shows what it cannot have after what
// it acknowledged: to a holder that renews its lease, which it drops at once, or to whoever leases
// anew. What two responses show begins a history, and until then nothing is leased, also as long as
// no second one arrives. One stale answer begins none: servers exist that answer with old data.
func TestStoreForgets(t *testing.T) {
	for name, c := range map[string]struct {
		shows string // the call that shows it
		says  string
	}{
		"its lease":   {"get", "it lacks a lease until"},
		"its page":    {"acquire", "the store contradicts itself"},
		"its history": {"describe", "again, which it had left"},
	} {
		for _, stale := range []bool{false, true} {
			b := newHeld(t)
			first := b.backup()
			b.rekey(nil)
			begun := b.backup()
			b.pass(6 * time.Second)
			second, mine := b.history(), b.Term()
			rounds := 1
			if stale {
				rounds = 2
			}
			for range rounds {
				after, shown := b.backup(), 0
				switch c.shows {
				case "get":
					b.objects.Set(begun)
				case "acquire":
					first["config"] = after["config"]
					fallthrough
				default:
					b.objects.Set(first)
					b.Drop(b.Term())
				}
				b.store.on = func(call *call) {
					if call.send(); call.op != c.shows {
						return
					}
					switch shown++; {
					case stale && shown == 1:
						b.objects.Set(after)
					case call.op == "get" && shown < 5 && shown > 1:
						call.err = errAway // nothing is leased until it can be read again
					}
				}
				b.pass(time.Minute)
				b.mustOne()
			}
			last := b.history()
			for _, call := range b.store.asked("acquire")[2:] {
				if call.err == nil && call.grant.Store != last.ID {
					t.Errorf("%s: a lease in history %s", name, call.grant.Store)
				}
			}
			if stale {
				b.wantBegun(0, 0)
				reads := len(b.store.asked("get"))
				b.Drop(b.Term())
				b.pass(time.Second)
				if len(b.store.asked("get")) > reads {
					t.Errorf("%s: a block that is no longer in doubt is read again", name)
				}
				continue
			}
			if b.wantBegun(0, 1); last.ID == second.ID || last.Reason != lease.Contradicted {
				t.Errorf("%s: the history is %+v", name, last)
			}
			b.wantText(c.says, " may be equal. The store gets a new history by itself",
				"(contradicted). Leases continue")
			if c.shows == "get" {
				b.wantDrops("store_contradiction")
				b.wantText("until " + text(mine.Grant().End) + " that it acknowledged. IDs " +
					"generated since " + text(mine.Seen()) + " in its history " + second.ID)
			}
		}
	}
}

// An operator has begun a history with a secret whose line is added to the file later.
func TestAnotherSecret(t *testing.T) {
	next := must(randflake.NewCodec([]byte("the next secret!")))
	b := newHeld(t)
	b.rekey(next)
	b.pass(6 * time.Second)
	b.mustOne() // of the old lease
	b.pass(time.Minute)
	b.wantError(randflake.ErrLeaseExpired)
	b.wantReports(lease.ErrWrongSecret)
	b.secrets = testKeyring.With(next, time.Time{}, time.Time{})
	b.pass(2 * lease.MaxBackoff)
	b.wantNode(0)
	b.wantBegun(0, 0)
	b.wantDrops()
	if g := b.Term().Grant(); g.Store != b.history().ID {
		t.Errorf("leased in history %s", g.Store)
	}
	b.wantText("(rekey). Leases continue")
}

// A begin that somebody left is not completed: the store begins another history.
func TestInterruptedBegin(t *testing.T) {
	b := newBench(t)
	asked := 0
	b.store.on = func(c *call) {
		if c.send(); c.op == "acquire" && asked == 0 || c.op == "describe" && asked == 1 {
			c.err = lease.ErrBeginning
			asked++
		}
	}
	b.pass(time.Second)
	b.mustOne()
	if acquired := b.store.asked("acquire"); acquired[0].nonce == acquired[1].nonce {
		t.Error("a nonce was used in two histories")
	}
	if begun := b.store.asked("begin"); len(begun) != 1 || begun[0].leaves != "" {
		t.Errorf("began %+v", begun)
	}
	b.wantReports()
}

// Whoever begins a history under random bits that a copy of the machine may have drawn, too, leaves
// it again.
func TestRestoredDuringBegin(t *testing.T) {
	for _, op := range []string{"begin", "secret"} {
		b := newHeld(t)
		b.clock.Add(6 * time.Second)
		b.objects.Move()
		restores := 1
		b.store.on = func(c *call) {
			c.send()
			if c.op == op && restores > 0 {
				b.machine, restores = b.machine+1, 0
			}
		}
		if op == "secret" {
			b.reading = func() { b.machine, b.reading = b.machine+1, nil }
		}
		b.Step(t.Context())
		b.Step(t.Context())
		before := len(b.store.asked("begin"))
		b.pass(lease.Reseeding - time.Millisecond)
		if n := len(b.store.asked("begin")); n != before {
			t.Errorf("%s: a history was begun while copies may draw the same ID", op)
		}
		b.pass(time.Second)
		b.mustOne()
		want := 1
		if op == "begin" {
			want = 2
		}
		b.wantBegun(want, 0)
		b.wantDrops("restored")
		if g := b.Term().Grant(); g.Store != b.history().ID {
			t.Errorf("%s: leased in history %s of %+v", op, g.Store, b.Histories())
		}
	}
}

// A store that moves all the time: the first two histories are begun at once, the others when the
// last one has been seen for 1, 2, 4 and 8 minutes. Nobody is refused, and whoever waits looks
// whether somebody else has begun one, or the store is back, but leases nothing in a history that
// forgot. An hour later nothing waits.
func TestBeginsAreSpaced(t *testing.T) {
	b := newHeld(t)
	const m = time.Minute
	for i, want := range []time.Duration{0, 0, m, 2 * m, 4 * m, 8 * m, 8 * m} {
		b.objects.Move()
		began := b.clock.elapsed
		for len(b.store.asked("begin")) == i {
			b.pass(time.Second)
		}
		late := b.clock.elapsed - began - want
		if late < -10*time.Second || late > 20*time.Second {
			t.Errorf("begin %d: %s later than %s", i+1, late, want)
		}
		b.pass(5 * time.Second)
		b.mustOne()
	}
	b.objects.Move()
	b.pass(m)
	must(b.memory.Begin(t.Context(), lease.BeginRequest{Reason: lease.Moved, Now: b.clock.Now(),
		Secrets: testKeyring}))
	b.pass(2 * lease.MaxBackoff)
	b.mustOne()
	b.wantBegun(7, 0)
	for _, refusal := range []error{lease.ErrMoved, lease.ErrContradicted} {
		b.store.on = func(c *call) {
			if c.send(); c.op == "renew" || c.op == "get" {
				c.err = refusal
			}
		}
		asked := len(b.store.asked("acquire"))
		b.pass(m / 2)
		leases := len(b.store.asked("acquire")) > asked
		if leases != errors.Is(refusal, lease.ErrMoved) { // it is back, or it forgot
			t.Errorf("%v: leases %v", refusal, leases)
		}
	}
	b.wantBegun(7, 0)
	b.store.on = nil
	b.pass(time.Hour + 10*m)
	for range 2 {
		b.objects.Move()
		b.pass(20 * time.Second)
		b.mustOne()
	}
	b.wantBegun(9, 1)
}

// The Keeper tells who begins a history of those that the store has lost from its list, and forgets
// none that others have begun.
func TestHistoriesAreKept(t *testing.T) {
	b := newHeld(t)
	before := b.backup()
	for range 2 {
		b.objects.Move()
		b.pass(10 * time.Second)
	}
	known := b.Histories()
	b.objects.Set(before)
	b.objects.Move()
	b.pass(2 * time.Minute)
	now := b.Histories()
	if len(now) != 4 || !slices.Equal(now[1:], known) ||
		!slices.Equal(must(b.memory.Describe(t.Context())).Histories(), now) {
		t.Errorf("the histories are %+v, and were %+v", now, known)
	}
	b.objects.Set(before)
	b.rekey(nil) // by somebody who knows none of them
	if b.pass(time.Minute); len(b.Histories()) != 5 {
		t.Errorf("the histories are %+v", b.Histories())
	}
}

// A Keeper for IDs needs a store with a secret, one for Nodes a store without: the error says which
// is which.
func TestKinds(t *testing.T) {
	for want, kinds := range map[string][2]*randflake.Codec{ // of the Keeper, and of the store
		"its nodes are for lease.Nodes; lease IDs from": {testCodec, nil},
		"its nodes are for IDs; lease Nodes from":       {nil, testCodec},
	} {
		b := newBenchOn(t, memstore.New(few, kinds[0]))
		b.store.Store = memstore.New(few, kinds[1])
		b.pass(time.Second)
		b.wantReports(lease.ErrKeyless)
		b.wantText(want)
		if n := len(b.store.asked("acquire")); n > 0 || !lease.Permanent(b.Failure()) {
			t.Errorf("%d Acquires, %v", n, b.Failure())
		}
	}
	if _, err := newHeld(t).Nodes(t.Context()); !errors.Is(err, lease.ErrKeyless) {
		t.Errorf("Nodes of a Keeper for IDs: %v", err)
	}
}

// Without a secret, or with a Codec that has none, nothing is acquired.
func TestCodecWithoutSecret(t *testing.T) {
	b := newBench(t)
	for _, b.secrets = range []*randflake.Keyring{randflake.NewKeyring(&randflake.Codec{}), nil} {
		b.pass(time.Minute)
		if n := len(b.store.asked("acquire")); n > 0 || b.Failure() == nil {
			t.Errorf("acquired %d times, and failed with %v", n, b.Failure())
		}
	}
}
