package lease_test

import (
	"context"
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
	{name: "renewal checks neither nonce nor version"},
	{name: "renewal writes nothing if the end stays"},
	{name: "renewal idempotent by its nonce"},
	{name: "assuming the requested end"},
	{name: "adopting anybody's renewal"},
	{"the start is not compared", func(w *world) { w.often, w.tight = lateAcquire, true }},
	{name: "sealing only if the start is unchanged"},
	{"a repeated Acquire is used at once",
		func(w *world) { w.vmclock, w.often = false, goldenImage }},
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
		if now := (clock{w, p}).Now().Truncate(time.Second); n > 0 && now.Before(second) {
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

// edit changes the first written block for which change returns true.
func (s *server) edit(change func(b *lease.Grant) bool) {
	blocks := s.list()
	for i := range blocks {
		if change(&blocks[i]) {
			ctx := context.Background()
			o := must(s.objects.Read(ctx, simPage))
			must(s.objects.Write(ctx, simPage, withBlocks(o.Data, blocks), o.Version))
			return
		}
	}
}

func (s *server) acquire(r lease.Request) (lease.Grant, error) {
	if s.w.wrong("Acquire does not compare the history") {
		r.Store = s.about.ID
	}
	start, end := s.w.wrong("grants count from the last start"),
		s.w.wrong("grants include the last end")
	if repeated := slices.ContainsFunc(s.list(),
		func(b lease.Grant) bool { return b.Nonce == r.Nonce }); !repeated && (start || end) {
		s.edit(func(b *lease.Grant) bool {
			free := start && !b.Start.After(r.Now) || end && b.End.Unix()-1 <= r.Now.Unix()
			if free && start {
				b.End = b.Start
			} else if free {
				b.End = b.End.Add(-time.Second)
				b.Start = b.End
			}
			return free
		})
	}
	return s.store.Acquire(context.Background(), r)
}

func (s *server) renew(g, stored lease.Grant, r lease.Request) (lease.Grant, error) {
	if s.w.wrong("renewal checks neither nonce nor version") {
		g.Nonce, g.Version = stored.Nonce, stored.Version
	}
	longer := r.Now.Add(r.TTL).Truncate(time.Second).After(stored.End)
	if s.w.wrong("renewal idempotent by its nonce") && stored.Nonce == r.Nonce ||
		s.w.wrong("renewal writes nothing if the end stays") && stored == g && !longer {
		return stored, nil
	}
	return s.store.Renew(context.Background(), g, r)
}

func (s *server) release(g lease.Grant, next string, unused time.Time) error {
	return s.store.Release(context.Background(), g, next, unused)
}
