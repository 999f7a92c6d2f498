package driver_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/driver"
)

var (
	moved = driver.NodeRange{Nodes: 32, BlockSize: 8}
	noon  = time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)
)

func grantAt(t *testing.T, s lease.Store, now time.Time) lease.Grant {
	t.Helper()
	g, err := s.Acquire(t.Context(), lease.Request{Nonce: lease.NewNonce(), Now: now, TTL: 10 * time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// The old store has clients hours behind and ahead. Whoever acquires a block of
// the new one gets no second of theirs, and the old store grants nothing more.
func TestMove(t *testing.T) {
	for name, offsets := range map[string][]time.Duration{
		"clocks that are right": {0, -time.Second},
		"clocks behind":         {0, -3 * time.Hour},
		"clocks ahead":          {0, 3 * time.Hour},
		"an idle store":         {-24 * time.Hour},
		"a store never used":    nil,
	} {
		t.Run(name, func(t *testing.T) {
			ctx := t.Context()
			from := driver.NewMemory(driver.WithNodeRange(moved))
			to := driver.NewMemory(driver.WithNodeRange(driver.NodeRange{Nodes: 32, BlockSize: 4}))
			var held []lease.Grant
			for _, d := range offsets {
				held = append(held, grantAt(t, from, noon.Add(d)))
			}
			end, err := driver.Move(ctx, from, to)
			if err != nil {
				t.Fatal(err)
			}
			for _, g := range held {
				if g.End.After(end) {
					t.Errorf("a grant ends at %s, after %s", g.End, end)
				}
			}
			for _, d := range []time.Duration{-3 * time.Hour, 0, 3 * time.Hour, 1000 * time.Hour} {
				r := lease.Request{Nonce: lease.NewNonce(), Now: noon.Add(d), TTL: time.Minute}
				if g, err := from.Acquire(ctx, r); !errors.Is(err, lease.ErrNoFreeNode) {
					t.Errorf("the old store grants %+v, %v", g, err)
				}
				if g, err := to.Acquire(ctx, r); err == nil && g.Start.Before(end) {
					t.Errorf("the new store grants seconds from %s on, before %s", g.Start, end)
				}
			}
			if _, err := to.Acquire(ctx, lease.Request{Nonce: lease.NewNonce(), Now: end, TTL: time.Minute}); err != nil {
				t.Errorf("at the end: %v", err)
			}
			if _, err := driver.Move(ctx, from, driver.NewMemory(driver.WithNodeRange(moved))); !errors.Is(err, lease.ErrInvalidRequest) {
				t.Errorf("moved to a third store: %v", err)
			}
			if _, err := driver.Move(ctx, to, from); !errors.Is(err, lease.ErrInvalidRequest) {
				t.Errorf("moved back to a closed store: %v", err)
			}
			back := driver.NewMemory(driver.WithNodeRange(moved))
			if later, err := driver.Move(ctx, to, back); err != nil || later.Before(end) {
				t.Errorf("moved to an emptied store: %s, %v", later, err)
			}
		})
	}
}

// interrupted does something before, or fails, in the nth call.
type interrupted struct {
	lease.Admin
	calls int
	at    int
	do    func() error
	each  func() // in every call, if it is not nil
}

func (s *interrupted) call() error {
	s.calls++
	if s.each != nil {
		s.each()
	}
	if s.calls == s.at {
		return s.do()
	}
	return nil
}

func (s *interrupted) List(ctx context.Context) ([]lease.Block, error) {
	if err := s.call(); err != nil {
		return nil, err
	}
	return s.Admin.List(ctx)
}

func (s *interrupted) Raise(ctx context.Context, until time.Time) error {
	if err := s.call(); err != nil {
		return err
	}
	return s.Admin.Raise(ctx, until)
}

// Between any two steps of a move a client, however wrong its clock, may acquire
// and renew, or the operator's connection may break.
func TestMoveInterrupted(t *testing.T) {
	errBroken := errors.New("broken")
	for at := range 8 {
		for _, ahead := range []time.Duration{-time.Hour, 0, time.Minute, time.Hour, 30 * time.Hour} {
			from, to := driver.NewMemory(driver.WithNodeRange(moved)), driver.NewMemory(driver.WithNodeRange(moved))
			held := []lease.Grant{grantAt(t, from, noon)}
			s := &interrupted{Admin: from, at: at, do: func() error {
				g, err := from.Renew(t.Context(), held[0], lease.Request{Nonce: lease.NewNonce(), Now: noon.Add(5 * time.Minute), TTL: 10 * time.Minute})
				if err == nil {
					held[0] = g
				}
				r := lease.Request{Nonce: lease.NewNonce(), Now: noon.Add(ahead), TTL: time.Hour}
				if g, err := from.Acquire(t.Context(), r); err == nil {
					held = append(held, g)
				}
				return nil
			}}
			end, err := driver.Move(t.Context(), s, to)
			if err != nil {
				t.Fatal(err)
			}
			for _, g := range held {
				if g.End.After(end) {
					t.Errorf("call %d, %s ahead: a grant ends at %s, the new store begins at %s", at, ahead, g.End, end)
				}
			}
			if g := grantAt(t, to, noon.Add(100*time.Hour)); g.Start.Before(end) {
				t.Errorf("the new store begins at %s", g.Start)
			}
		}
		from, to := driver.NewMemory(driver.WithNodeRange(moved)), driver.NewMemory(driver.WithNodeRange(moved))
		g := grantAt(t, from, noon)
		s := &interrupted{Admin: from, at: at, do: func() error { return errBroken }}
		if _, err := driver.Move(t.Context(), s, to); err != nil {
			if !errors.Is(err, errBroken) {
				t.Fatal(err)
			}
			if end, err := driver.Move(t.Context(), from, to); err != nil || end.Before(g.End) {
				t.Errorf("call %d broke, again: %s, %v", at, end, err)
			}
		}
		for _, d := range []time.Duration{0, time.Hour} {
			r := lease.Request{Nonce: lease.NewNonce(), Now: noon.Add(d), TTL: time.Minute}
			if got, err := to.Acquire(t.Context(), r); err == nil && got.Start.Before(g.End) {
				t.Errorf("call %d broke: the new store grants %+v", at, got)
			}
		}
	}
}

// A client that acquired a block between any two steps of a move may renew it between any other
// two. Its clock need not be wrong: all leases of a store without a clock may be over.
func TestMoveDuringRenewals(t *testing.T) {
	for _, ttl := range []time.Duration{lease.MinTTL, 10 * time.Minute, lease.MaxTTL} {
		for acquired := 1; acquired < 8; acquired++ {
			from, to := driver.NewMemory(driver.WithNodeRange(moved)), driver.NewMemory(driver.WithNodeRange(moved))
			var held lease.Grant
			now := noon
			s := &interrupted{Admin: from, at: -1}
			s.each = func() {
				var g lease.Grant
				var err error
				r := lease.Request{Nonce: lease.NewNonce(), Now: now, TTL: ttl}
				if s.calls == acquired {
					g, err = from.Acquire(t.Context(), r)
				} else {
					g, err = from.Renew(t.Context(), held, r)
				}
				if err == nil {
					held, now = g, g.End.Add(-time.Second) // it renews as late as possible
				}
			}
			end, err := driver.Move(t.Context(), s, to)
			if err != nil {
				t.Fatal(err)
			}
			if held.End.After(end) {
				t.Errorf("acquired before call %d for %s: the grant ends at %s, the new store begins at %s", acquired, ttl, held.End, end)
			}
			if got := grantAt(t, to, noon.Add(1000*time.Hour)); got.Start.Before(held.End) {
				t.Errorf("the new store grants %+v", got)
			}
		}
	}
}

// Nodes that were moved before are not moved again with the rest of the store.
func TestMoveTheRest(t *testing.T) {
	list := func(s lease.Admin) []lease.Block {
		blocks, err := s.List(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return blocks
	}
	whole := driver.NewMemory(driver.WithNodeRange(moved))
	held := grantAt(t, whole, noon)
	part := driver.NodeRange{First: held.Node, Nodes: held.Nodes, BlockSize: held.Nodes}
	from := driver.NewMemory(driver.WithNodeRange(part), driver.WithBlocks(list(whole)))
	if _, err := driver.Move(t.Context(), from, driver.NewMemory(driver.WithNodeRange(part))); err != nil {
		t.Fatal(err)
	}
	whole = driver.NewMemory(driver.WithNodeRange(moved), driver.WithBlocks(append(list(whole), list(from)...)))
	other := driver.NewMemory(driver.WithNodeRange(moved))
	grantAt(t, other, noon) // it is in use
	if end, err := driver.Move(t.Context(), whole, other); !errors.Is(err, lease.ErrInvalidRequest) {
		t.Errorf("two stores grant node %d from %s on: %v", held.Node, end, err)
	}
}

func TestMoveRefused(t *testing.T) {
	store := driver.NewMemory(driver.WithNodeRange(moved))
	other := driver.NewMemory(driver.WithNodeRange(driver.NodeRange{First: 32, Nodes: 32, BlockSize: 8}))
	later := noon
	for what, to := range map[string]lease.Admin{"itself": store, "other nodes": other} {
		if _, err := driver.Move(t.Context(), store, to); !errors.Is(err, lease.ErrInvalidRequest) {
			t.Errorf("moved to %s: %v", what, err)
		}
		later = later.Add(30 * 24 * time.Hour)
		grantAt(t, store, later) // it is open
	}
}
