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

func newMemory(nodes driver.NodeRange, opts ...driver.MemoryOption) *driver.Memory {
	return driver.NewMemory(append(opts, driver.WithNodeRange(nodes))...)
}

func at(now time.Time, ttl time.Duration) lease.Request {
	return lease.Request{Nonce: lease.NewNonce(), Now: now, TTL: ttl}
}

func grantAt(t *testing.T, s lease.Store, now time.Time) lease.Grant {
	t.Helper()
	g, err := s.Acquire(t.Context(), at(now, 10*time.Minute))
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
			from := newMemory(moved)
			to := newMemory(driver.NodeRange{Nodes: 32, BlockSize: 4})
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
				r := at(noon.Add(d), time.Minute)
				if g, err := from.Acquire(ctx, r); !errors.Is(err, lease.ErrNoFreeNode) {
					t.Errorf("the old store grants %+v, %v", g, err)
				}
				if g, err := to.Acquire(ctx, r); err == nil && g.Start.Before(end) {
					t.Errorf("the new store grants seconds from %s on, before %s", g.Start, end)
				}
			}
			if _, err := to.Acquire(ctx, at(end, time.Minute)); err != nil {
				t.Errorf("at the end: %v", err)
			}
			if _, err := driver.Move(ctx, from, newMemory(moved)); !errors.Is(err, lease.ErrInvalidRequest) {
				t.Errorf("moved to a third store: %v", err)
			}
			if _, err := driver.Move(ctx, to, from); !errors.Is(err, lease.ErrInvalidRequest) {
				t.Errorf("moved back to a closed store: %v", err)
			}
			back := newMemory(moved)
			if later, err := driver.Move(ctx, to, back); err != nil || later.Before(end) {
				t.Errorf("moved to an emptied store: %s, %v", later, err)
			}
		})
	}
}

// interrupted is a store with something before each call, which may fail.
type interrupted struct {
	lease.Admin
	calls  int
	before func(call int) error
}

func (s *interrupted) List(ctx context.Context) ([]lease.Block, error) {
	s.calls++
	if err := s.before(s.calls); err != nil {
		return nil, err
	}
	return s.Admin.List(ctx)
}

func (s *interrupted) Raise(ctx context.Context, until time.Time) error {
	s.calls++
	if err := s.before(s.calls); err != nil {
		return err
	}
	return s.Admin.Raise(ctx, until)
}

// Between any two steps of a move a client, however wrong its clock, may acquire
// and renew, or the operator's connection may break.
func TestMoveInterrupted(t *testing.T) {
	errBroken := errors.New("broken")
	for broken := range 8 {
		for _, ahead := range []time.Duration{-time.Hour, 0, time.Minute, time.Hour, 30 * time.Hour} {
			from, to := newMemory(moved), newMemory(moved)
			held := []lease.Grant{grantAt(t, from, noon)}
			end, err := driver.Move(t.Context(), &interrupted{Admin: from, before: func(call int) error {
				if call != broken {
					return nil
				}
				if g, err := from.Renew(t.Context(), held[0], at(noon.Add(5*time.Minute), 10*time.Minute)); err == nil {
					held[0] = g
				}
				if g, err := from.Acquire(t.Context(), at(noon.Add(ahead), time.Hour)); err == nil {
					held = append(held, g)
				}
				return nil
			}}, to)
			if err != nil {
				t.Fatal(err)
			}
			for _, g := range held {
				if g.End.After(end) {
					t.Errorf("call %d, %s ahead: a grant ends at %s, the new store begins at %s", broken, ahead, g.End, end)
				}
			}
			if g := grantAt(t, to, noon.Add(100*time.Hour)); g.Start.Before(end) {
				t.Errorf("the new store begins at %s", g.Start)
			}
		}
		from, to := newMemory(moved), newMemory(moved)
		g := grantAt(t, from, noon)
		_, err := driver.Move(t.Context(), &interrupted{Admin: from, before: func(call int) error {
			if call == broken {
				return errBroken
			}
			return nil
		}}, to)
		if err != nil && !errors.Is(err, errBroken) {
			t.Fatal(err)
		}
		if err != nil {
			if end, err := driver.Move(t.Context(), from, to); err != nil || end.Before(g.End) {
				t.Errorf("call %d broke, again: %s, %v", broken, end, err)
			}
		}
		for _, d := range []time.Duration{0, time.Hour} {
			if got, err := to.Acquire(t.Context(), at(noon.Add(d), time.Minute)); err == nil && got.Start.Before(g.End) {
				t.Errorf("call %d broke: the new store grants %+v", broken, got)
			}
		}
	}
}

// A client that acquired a block between any two steps of a move may renew it between any other
// two. Its clock need not be wrong: all leases of a store without a clock may be over.
func TestMoveDuringRenewals(t *testing.T) {
	for _, ttl := range []time.Duration{lease.MinTTL, 10 * time.Minute, lease.MaxTTL} {
		for acquired := 1; acquired < 8; acquired++ {
			from, to := newMemory(moved), newMemory(moved)
			var held lease.Grant
			now := noon
			end, err := driver.Move(t.Context(), &interrupted{Admin: from, before: func(call int) (err error) {
				var g lease.Grant
				if call == acquired {
					g, err = from.Acquire(t.Context(), at(now, ttl))
				} else {
					g, err = from.Renew(t.Context(), held, at(now, ttl))
				}
				if err == nil {
					held, now = g, g.End.Add(-time.Second) // it renews as late as possible
				}
				return nil
			}}, to)
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
	whole := newMemory(moved)
	held := grantAt(t, whole, noon)
	part := driver.NodeRange{First: held.Node, Nodes: held.Nodes, BlockSize: held.Nodes}
	from := newMemory(part, driver.WithBlocks(list(whole)))
	if _, err := driver.Move(t.Context(), from, newMemory(part)); err != nil {
		t.Fatal(err)
	}
	whole = newMemory(moved, driver.WithBlocks(append(list(whole), list(from)...)))
	other := newMemory(moved)
	grantAt(t, other, noon) // it is in use
	if end, err := driver.Move(t.Context(), whole, other); !errors.Is(err, lease.ErrInvalidRequest) {
		t.Errorf("two stores grant node %d from %s on: %v", held.Node, end, err)
	}
}

func TestMoveRefused(t *testing.T) {
	store := newMemory(moved)
	other := newMemory(driver.NodeRange{First: 32, Nodes: 32, BlockSize: 8})
	later := noon
	for what, to := range map[string]lease.Admin{"itself": store, "other nodes": other} {
		if _, err := driver.Move(t.Context(), store, to); !errors.Is(err, lease.ErrInvalidRequest) {
			t.Errorf("moved to %s: %v", what, err)
		}
		later = later.Add(30 * 24 * time.Hour)
		grantAt(t, store, later) // it is open
	}
}
