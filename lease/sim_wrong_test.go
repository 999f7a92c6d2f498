package lease_test

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/randflake"
)

// variant is a mistake, in the code or by an operator, and the faults by which a world shows it.
// The zero variant is the production code.
type variant struct {
	name  string
	shows func(*world)
}

func (w *world) wrong(name string) bool { return w.variant.name == name }

// wrongVariants must all be caught. They do not include a store that compares only nonces and not
// versions: no nonce is ever written twice, so that is harmless here. The conformance suite
// refuses it, and a store that does not compare renewals with its clock.
var wrongVariants = []variant{
	{name: "grants count from the last start"},
	{name: "grants include the last end"},
	{name: "inclusive end"},
	{name: "resuming a grant after a crash"},
	{name: "state in three words"},
	{"no hold when the clock steps back", func(w *world) { w.often = clockStep }},
	{"borrowing past the end", bursts},
	{name: "a store that forgets acknowledged grants"},
	{name: "writes without a condition"},
	{name: "renewal checks neither nonce nor version"},
	{name: "renewal writes nothing if the end stays"},
	{"renewal idempotent by its nonce", clones},
	{name: "assuming the requested end"},
	{name: "adopting anybody's renewal"},
	{"the start is not compared", clones},
	{name: "sealing only if the start is unchanged"},
	{"a repeated Acquire is used at once", clones},
	{"used seconds are returned", bursts},
	{"a restored machine continues", restores},
	{"nonces of the kernel alone", func(w *world) { w.mixed = false }},
	{"nonces drawn at once after a restore", func(w *world) { w.vmclock, w.mixed = true, false }},
	{"a new store with the old secret at once", operators},
	{"a copy with the old secret", operators},
	{"a process reaches a restored store", operators},
	{"histories are numbered in the store", operators},
	{"Acquire does not compare the history", operators},
	{"two stores with one secret", twoStores},
	{"a store that creates itself", losses},
	{"secrets are not compared", func(w *world) { w.twoStores, w.often = true, otherSecret }},
}

func clones(w *world)    { w.vmclock, w.often = false, goldenImage }
func bursts(w *world)    { w.bursts = true }
func restores(w *world)  { w.vmclock = true }
func operators(w *world) { w.operators = 2 }
func twoStores(w *world) { w.twoStores = true }
func losses(w *world)    { w.losses = true }

// A wrong generator changes the IDs of the right one, or when it ends.
func (p *process) generate(dst []randflake.ID) (n int, second time.Time, err error) {
	switch w := p.w; {
	case w.wrong("state in three words"):
		// The word of the second is read, then another goroutine may enter the next second.
		var one [1]randflake.ID
		if _, second, err = p.keeper.Fill(one[:]); err != nil {
			return 0, second, err
		}
		p.sleep(p.between(0, time.Millisecond))
		n, _, err = p.keeper.Fill(dst)
		p.relabel(dst[:n], second)
		return n, second, err
	case w.wrong("no hold when the clock steps back"):
		n, second, err = p.keeper.Fill(dst)
		now, _ := clock{w, p}.now()
		if now = now.Truncate(time.Second); n > 0 && now.Before(second) {
			p.relabel(dst[:n], now)
			second = now
		}
		return n, second, err
	case w.wrong("borrowing past the end"):
		if t := p.keeper.Term(); t != nil {
			_ = t.Generator().Extend(t.Grant().End.Add(2 * time.Second))
		}
	}
	return p.keeper.Fill(dst)
}

// relabel moves IDs to another second.
func (p *process) relabel(ids []randflake.ID, second time.Time) {
	for i, id := range ids {
		parts := p.secret.Decode(id)
		parts.Time = second
		ids[i] = must(p.secret.Encode(parts))
	}
}

// reads returns the state that a process takes its stored block for.
func (p *process) reads(stored lease.Grant) lease.Grant {
	w, mine := p.w, p.about
	sameStart := stored.Start.Equal(mine.Start)
	proposed := slices.Contains(p.asked, stored.Nonce) || slices.Contains(p.proposed, stored.Nonce)
	switch {
	case len(p.proposed) == 0:
	case w.wrong("adopting anybody's renewal") && sameStart, w.wrong("the start is not compared") &&
		proposed:
		if stored.Version > mine.Version {
			stored.Start, stored.Nonce, stored.Version = mine.Start, p.proposed[len(p.proposed)-1],
				mine.Version+1
		}
	case w.wrong("sealing only if the start is unchanged") && !sameStart:
		return mine
	}
	return stored
}

// misreads reports whether the variant is about what reads returns.
func (w *world) misreads() bool {
	return w.wrong("adopting anybody's renewal") || w.wrong("the start is not compared") ||
		w.wrong("sealing only if the start is unchanged")
}

// acquire is the engine's Acquire, or a wrong one.
func (c client) acquire(r lease.Request) (lease.Grant, error) {
	w, s := c.p.w, c.p.server
	if w.wrong("Acquire does not compare the history") {
		r.Store = ask(c.p, func() string { return s.about.ID })
	}
	start, end := w.wrong("grants count from the last start"),
		w.wrong("grants include the last end")
	if start || end {
		ask(c.p, func() bool { return s.shorten(r, start) })
	}
	return c.Store.Acquire(context.Background(), r)
}

// shorten ends the first grant that a request would meet: at its start, or before its last second.
func (s *server) shorten(r lease.Request, start bool) bool {
	blocks, _ := s.store.List(context.Background())
	for _, b := range blocks {
		unused := b.End.Add(-time.Second)
		if start {
			unused = b.Start
		}
		if b.Nonce == r.Nonce {
			return false
		}
		if unused.Unix() <= r.Now.Unix() && b.Start.Before(b.End) {
			return s.store.Release(context.Background(), b, s.w.newID(), unused) == nil
		}
	}
	return false
}

// renew is the engine's Renew, or a wrong one.
func (c client) renew(g lease.Grant, r lease.Request) (lease.Grant, error) {
	p, w := c.p, c.p.w
	stored := func() lease.Grant {
		return ask(p, func() lease.Grant {
			b, _ := p.server.store.Get(context.Background(), g)
			return b
		})
	}
	yes := func(b lease.Grant) (lease.Grant, error) { // although nothing was written
		w.ledger.hears(p, w.ledger.byNonce[b.Nonce])
		return b, nil
	}
	if w.wrong("renewal checks neither nonce nor version") {
		b := stored()
		g.Nonce, g.Version = b.Nonce, b.Version
	}
	if w.wrong("renewal writes nothing if the end stays") &&
		!r.Now.Add(r.TTL).Truncate(time.Second).After(g.End) && stored() == g {
		return yes(g)
	}
	renewed, err := c.Store.Renew(context.Background(), g, r)
	if w.wrong("renewal idempotent by its nonce") && errors.Is(err, lease.ErrLost) {
		if b := stored(); b.Nonce == r.Nonce {
			return yes(b)
		}
	}
	return renewed, err
}
