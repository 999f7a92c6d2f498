package lease_test

import (
	"context"
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
	objects := map[string][]byte{}
	for name, o := range must(b.objects.List(b.t.Context())) {
		objects[name] = o.Data
	}
	return objects
}

func (b *bench) history() lease.History { return must(b.memory.Describe(b.t.Context())).History }

// rekey begins a history as an operator does, with a secret.
func (b *bench) rekey(secret *randflake.Codec) {
	b.t.Helper()
	must(b.memory.Begin(b.t.Context(), lease.BeginRequest{Leaves: b.history().ID,
		Reason: lease.Rekey, Now: b.clock.Now(), Secrets: testKeyring, Secret: secret}))
}

// begun returns how many histories the Keeper has begun, by reason.
func (b *bench) begun() (moved, contradicted int) {
	for _, c := range b.store.asked("begin") {
		switch {
		case c.err != nil:
		case c.reason == lease.Moved:
			moved++
		default:
			contradicted++
		}
	}
	return moved, contradicted
}

func (b *bench) wantBegun(moved, contradicted int) {
	b.t.Helper()
	if m, c := b.begun(); m != moved || c != contradicted {
		b.t.Errorf("began %d and %d histories, want %d and %d", m, c, moved, contradicted)
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
// leases first, who has minutes for it. The lease of the old history is used, under its key, until
// there is another one, and ready IDs stay valid.
func TestStoreMoves(t *testing.T) {
	option, collect := metered(t)
	b := newHeld(t, option)
	old, first, former := b.Codec(), b.history(), b.Term()
	b.clock.Add(6 * time.Second)
	b.objects.Move()
	id := must(b.Next())
	b.Step(t.Context()) // the renewal
	if p := old.Decode(must(b.Next())); p.Node != 0 || b.Codec() != old || b.Former() == nil {
		t.Errorf("after the renewal was refused: an ID of node %d", p.Node)
	}
	b.pass(time.Second)
	second := b.history()
	if first.ID == second.ID || second.Reason != lease.Moved || b.Codec() == old ||
		b.Former() != nil {
		t.Fatalf("the history is %+v, after %+v", second, first)
	}
	b.wantNode(0) // which nobody was granted in the new history
	if p := old.Decode(id); p.Node != 0 || p.Time.Before(testStart) {
		t.Errorf("an earlier ID decodes to %+v", p)
	}
	key := must(lease.HistoryCodec(testCodec, second.ID))
	if p := key.Decode(must(b.Next())); p.Node != 0 || p.Time.Before(testStart) {
		t.Errorf("an ID of the new history decodes to %+v", p)
	}
	if _, err := former.Generator().Next(); !errors.Is(err, randflake.ErrSealed) {
		t.Errorf("the former generator: %v", err)
	}
	begin := b.store.asked("begin")[0].ctx
	if until, ok := begin.Deadline(); !ok || time.Until(until) < 4*time.Minute ||
		!errors.Is(begin.Err(), context.Canceled) {
		t.Errorf("a begin had until %s: %v", until, begin.Err())
	}
	b.wantDrops()
	b.Drop(b.Term())
	b.pass(time.Second)
	b.mustOne()
	b.wantBegun(1, 0)
	if n := collect(); n[histories+lease.Moved] != 1 || n[histories+lease.Contradicted] != 0 {
		t.Errorf("the metrics count %v begun histories", n)
	}
	b.wantText("the store's history was begun elsewhere", "nothing is to be done\nlease: the store"+
		" has a new history, "+second.ID, "(moved). Leases continue")
	if known := b.Histories(); len(known) != 2 || known[0] != second || known[1] != first {
		t.Errorf("the histories are %+v", known)
	}
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
		case c.op == "renew" && began > 0:
			c.err = errAway
		case c.op == "acquire" && acquired != 3: // which finds the second one's grant
			loses(c)
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
	said := errors.Join(b.reports...).Error()
	if strings.Count(said, "nothing is to be done") != 2 {
		t.Errorf("reported %s", said)
	}
	b.store.on = nil
	b.pass(time.Minute)
	b.mustOne()
}

// A store that was set back at its place shows another grant than it acknowledged. The Keeper drops
// its grant at once, reads the block again, and begins a history. As long as it cannot be read
// again, nothing is leased.
func TestStoreForgets(t *testing.T) {
	b := newBench(t)
	before := b.backup()
	b.pass(0)
	first := b.history()
	b.clock.Add(6 * time.Second)
	b.objects.Set(before)
	b.store.on = func(c *call) {
		if c.send(); c.op == "get" && len(b.store.asked("get")) > 1 {
			c.err = errAway
		}
	}
	b.Step(t.Context())
	b.wantDrops("store_contradiction")
	b.wantError(lease.ErrNoLease)
	b.pass(time.Minute)
	b.wantError(lease.ErrNoLease)
	b.wantBegun(0, 0)
	b.store.on = nil
	b.pass(2 * lease.MaxBackoff)
	b.mustOne()
	b.wantBegun(0, 1)
	if second := b.history(); first.ID == second.ID || second.Reason != lease.Contradicted {
		t.Errorf("the history is %+v, after %+v", second, first)
	}
	if n := len(b.store.asked("acquire")); n != 2 {
		t.Errorf("%d Acquires, want one in each history", n)
	}
	b.wantText("it lacks a lease until", "IDs generated since "+testStart.Format(time.RFC3339)+
		" in its history "+first.ID+" may be equal", "(contradicted). Leases continue")
}

// What one response shows begins no history: servers exist that answer with old data. The grant is
// dropped all the same.
func TestOneStaleAnswer(t *testing.T) {
	for _, op := range []string{"renew", "acquire"} {
		b := newBench(t)
		stale := true
		b.store.on = func(c *call) {
			c.send()
			switch {
			case c.op != op || !stale:
			case op == "renew":
				c.grant.Version = 0
				stale = false
			default:
				c.err, stale = lease.ErrContradicted, false
			}
		}
		b.pass(8 * time.Second)
		b.mustOne()
		b.wantBegun(0, 0)
		if op == "renew" {
			b.wantDrops("store_contradiction")
			b.wantNode(1)
			b.Drop(b.Term())
			b.pass(time.Second)
			if n := len(b.store.asked("get")); n != 1 {
				t.Errorf("the block was read %d times", n)
			}
		} else {
			b.wantReports()
		}
	}
}

// A store that shows a history which it had left was set back. Nothing is leased in that history:
// it forgot what was granted before it was left, and some of that may still be used.
func TestHistoryReturns(t *testing.T) {
	for name, times := range map[string]int{"set back": 1 << 30, "one stale answer": 1} {
		b := newHeld(t)
		first, before := b.history(), b.backup()
		b.rekey(nil)
		b.pass(6 * time.Second)
		second, after := b.history(), b.backup()
		b.objects.Set(before)
		b.Drop(b.Term())
		b.store.on = func(c *call) {
			c.send()
			switch {
			case c.op == "acquire" && c.grant.Store == first.ID:
				t.Errorf("%s: it leases in the history that was left", name)
			case c.op == "describe":
				if times--; times == 0 {
					b.objects.Set(after)
				}
			}
		}
		b.pass(6 * time.Second)
		b.mustOne()
		last := b.history()
		if times > 0 {
			b.wantBegun(0, 1)
			b.wantText(first.ID + " again, which it had left")
			if last.ID == first.ID || last.ID == second.ID || last.Reason != lease.Contradicted {
				t.Errorf("%s: the history is %+v", name, last)
			}
		} else if b.wantBegun(0, 0); last.ID != second.ID {
			t.Errorf("%s: the history is %+v", name, last)
		}
	}
}

// A page of another history under a complete description, in a row.
func TestStoreContradictsItself(t *testing.T) {
	b := newBench(t)
	b.store.on = func(c *call) {
		if c.send(); c.op == "acquire" && len(b.store.asked("begin")) == 0 {
			c.err = lease.ErrContradicted
		}
	}
	b.pass(time.Second)
	b.mustOne()
	b.wantBegun(0, 1)
	b.wantText("the store contradicts itself")
}

// Somebody else has begun a history, or is doing so: an operator with another secret, whose line
// is already in the file or comes later.
func TestAnotherHistory(t *testing.T) {
	next := must(randflake.NewCodec([]byte("the next secret!")))
	both := testKeyring.With(next, time.Time{}, time.Time{})
	for name, c := range map[string]struct {
		secret  *randflake.Codec
		reports int
	}{"the same secret": {nil, 1}, "another secret": {next, 3}} {
		b := newHeld(t)
		b.rekey(c.secret)
		end := b.block(0).End // of a block that was never granted
		if b.pass(6 * time.Second); c.secret != nil {
			b.mustOne() // of the old lease
			b.pass(time.Minute)
			b.wantError(randflake.ErrLeaseExpired)
			if !errors.Is(b.Failure(), lease.ErrWrongSecret) {
				t.Errorf("%s: %v", name, b.Failure())
			}
			b.secrets = both
			b.pass(2 * lease.MaxBackoff)
		}
		b.wantNode(0)
		b.wantBegun(0, 0)
		b.wantDrops()
		if g := b.Term().Grant(); g.Store != b.history().ID || !end.IsZero() {
			t.Errorf("%s: leased in history %s", name, g.Store)
		}
		if len(b.reports) != c.reports {
			t.Errorf("%s: reported %v", name, b.reports)
		}
		b.wantText("(rekey). Leases continue")
	}
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
				b.life, restores = b.life+1, 0
			}
		}
		if op == "secret" {
			b.reading = func() { b.life, b.reading = b.life+1, nil }
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
// whether somebody else has begun one. An hour later nothing waits.
func TestBeginsAreSpaced(t *testing.T) {
	b := newHeld(t)
	move := func() time.Duration {
		b.objects.Move()
		began, n := b.clock.elapsed, len(b.store.asked("begin"))
		for len(b.store.asked("begin")) == n && b.clock.elapsed < began+time.Hour {
			b.pass(time.Second)
		}
		return b.clock.elapsed - began
	}
	const m = time.Minute
	for i, want := range []time.Duration{0, 0, m, 2 * m, 4 * m, 8 * m, 8 * m} {
		if took := move(); took < want-10*time.Second || took > want+20*time.Second {
			t.Errorf("begin %d: after %s, want %s", i+1, took, want)
		}
		b.pass(5 * time.Second)
		b.mustOne()
	}
	moved, _ := b.begun()
	b.objects.Move()
	b.pass(time.Minute)
	must(b.memory.Begin(t.Context(), lease.BeginRequest{Reason: lease.Moved, Now: b.clock.Now(),
		Secrets: testKeyring}))
	b.pass(2 * lease.MaxBackoff)
	b.mustOne()
	b.wantBegun(moved, 0)
	b.pass(time.Hour)
	for range 2 {
		if took := move(); took > 20*time.Second {
			t.Errorf("an hour later: after %s", took)
		}
	}
}

// A Keeper that waits until it may begin a history leases nothing in one that forgot, but does if
// the store is back where it was.
func TestWaitingKeeper(t *testing.T) {
	for name, c := range map[string]struct {
		refusal error
		leases  bool
	}{"it moved, and back": {lease.ErrMoved, true}, "it forgot": {lease.ErrContradicted, false}} {
		b := newHeld(t)
		for range 2 {
			b.objects.Move()
			b.pass(10 * time.Second)
		}
		asked := len(b.store.asked("acquire"))
		b.store.on = func(call *call) {
			if call.send(); call.op == "renew" || call.op == "get" {
				call.err = c.refusal
			}
		}
		b.pass(25 * time.Second)
		if leases := len(b.store.asked("acquire")) > asked; leases != c.leases {
			t.Errorf("%s: leases %v", name, leases)
		}
		b.wantBegun(2, 0)
	}
}

// The Keeper tells who begins a history of those that the store has lost from its list.
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
	if len(known) != 3 || len(now) != 4 || !slices.Equal(now[1:], known) ||
		!slices.Equal(must(b.memory.Describe(t.Context())).Histories(), now) {
		t.Errorf("the histories are %+v, and were %+v", now, known)
	}
	b.objects.Set(before)
	must(b.memory.Begin(t.Context(), lease.BeginRequest{Reason: lease.Moved, Now: b.clock.Now(),
		Secrets: testKeyring})) // by somebody who knows none of them
	if b.pass(time.Minute); len(b.Histories()) != 5 {
		t.Errorf("the histories are %+v", b.Histories())
	}
}

// A Keeper for IDs needs a store with a secret, one for Nodes a store without: the error says which
// is which. A store without a secret that has moved waits for an operator.
func TestKinds(t *testing.T) {
	for name, c := range map[string]struct {
		store, keeper *randflake.Codec
		want          string
	}{
		"IDs without a secret": {nil, testCodec, "its nodes are for lease.Nodes; lease IDs from"},
		"Nodes with a secret":  {testCodec, nil, "its nodes are for IDs; lease Nodes from"},
	} {
		b := newBenchOn(t, memstore.New(few, c.keeper)) // for its kind
		b.store.Store = memstore.New(few, c.store)
		b.pass(time.Second)
		b.wantReports(lease.ErrKeyless)
		b.wantText(c.want)
		if n := len(b.store.asked("acquire")); n > 0 || !lease.Permanent(b.Failure()) {
			t.Errorf("%s: %d Acquires, %v", name, n, b.Failure())
		}
	}
	ids := newHeld(t)
	if _, err := ids.Nodes(t.Context()); !errors.Is(err, lease.ErrKeyless) {
		t.Errorf("Nodes of a Keeper for IDs: %v", err)
	}
	objects := new(memstore.Objects)
	b := newBenchOn(t, must(newMemory(t, objects, lease.Description{Keyless: true})))
	b.pass(0)
	b.wantError(lease.ErrKeyless)
	if b.Codec() != nil {
		t.Error("a Keeper for Nodes has a codec")
	}
	nodes := must(b.Nodes(t.Context()))
	objects.Move()
	b.pass(time.Minute)
	b.wantReports(lease.ErrMisconfigured)
	if n := len(b.store.asked("begin")); n > 0 || nodes.Context().Err() == nil {
		t.Errorf("began %d histories", n)
	}
}

// A Codec without a secret acquires nothing, since no generator would use the lease.
func TestCodecWithoutSecret(t *testing.T) {
	b := newBench(t)
	b.secrets = randflake.NewKeyring(&randflake.Codec{})
	b.pass(time.Minute)
	b.secrets = nil
	b.pass(time.Minute)
	if n := len(b.store.asked("acquire")); n > 0 || !errors.Is(b.Failure(), errAway) {
		t.Errorf("acquired %d times, and failed with %v", n, b.Failure())
	}
}
