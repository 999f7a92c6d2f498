package driver

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/traceflake/traceflake/lease"
)

// Memory is a [Store] within one process, for tests: it forgets everything when the process
// ends. The zero Memory is an empty storage, for Create. It is safe for concurrent use.
type Memory struct {
	// Clock is the store's own: with it the store refuses clients whose clocks are ahead. If it is
	// nil, the store trusts every client's. Set it before the store is used.
	Clock func() time.Time

	mu     sync.Mutex
	about  lease.Description // the ID is "" until it is created
	blocks []Block
}

var _ Store = (*Memory)(nil)

// NewMemory returns a store of some nodes that already exists. Its longest TTL is [lease.MaxTTL], and it
// has no secrets, so that a Keeper may use any. It panics if the range is invalid.
func NewMemory(nodes NodeRange) *Memory {
	m := new(Memory)
	d, err := NewDescription(lease.Description{
		First: nodes.First, Nodes: nodes.Nodes, BlockSize: nodes.BlockSize, LongestTTL: lease.MaxTTL,
	})
	if err == nil {
		err = m.Create(context.Background(), d)
	}
	if err != nil {
		panic(err)
	}
	return m
}

// Describe implements [lease.Store].
func (m *Memory) Describe(ctx context.Context) (d lease.Description, err error) {
	err = m.do(ctx, "describe", func() error {
		d = m.about
		d.Secrets = slices.Clone(d.Secrets)
		return nil
	})
	return d, err
}

// Create implements [lease.Admin].
func (m *Memory) Create(ctx context.Context, d lease.Description) error {
	if err := cmp.Or(CheckDescription(d), ctx.Err()); err != nil {
		return fmt.Errorf("lease: memory store: create: %w", err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	switch m.about.ID {
	case d.ID:
		return nil
	case "":
	default:
		return fmt.Errorf("%w, with the ID %s", lease.ErrExists, m.about.ID)
	}
	m.about = d
	m.about.Secrets = slices.Clone(d.Secrets)
	nodes := RangeOf(d)
	m.blocks = make([]Block, nodes.Blocks())
	for i := range m.blocks {
		if m.blocks[i] = nodes.Block(i); !d.Raised.IsZero() {
			m.blocks[i] = m.blocks[i].Raise(d.Raised)
		}
	}
	return nil
}

// Restore puts back the blocks of a List, as an operator does with a backup. Blocks that the store does
// not have are left out.
func (m *Memory) Restore(blocks []lease.Grant) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, b := range blocks {
		if i, err := RangeOf(m.about).Index(b.Node); err == nil && b.Nodes == m.about.BlockSize {
			m.blocks[i] = Block(b)
		}
	}
}

// AddSecret implements [lease.Admin].
func (m *Memory) AddSecret(ctx context.Context, fingerprint string) error {
	if err := CheckFingerprint(fingerprint); err != nil {
		return err
	}
	return m.do(ctx, "add a secret", func() error {
		if !slices.Contains(m.about.Secrets, fingerprint) {
			m.about.Secrets = append(m.about.Secrets, fingerprint)
		}
		return nil
	})
}

// Close implements [Store].
func (m *Memory) Close(context.Context) error { return nil }

// Acquire implements [lease.Store]. It takes the free block with the lowest nodes.
func (m *Memory) Acquire(ctx context.Context, r lease.Request) (g lease.Grant, err error) {
	if err := CheckRequest(r, m.now()); err != nil {
		return g, err
	}
	err = m.do(ctx, "acquire", func() error {
		i := slices.IndexFunc(m.blocks, func(b Block) bool { return b.Nonce == r.Nonce })
		if i < 0 {
			if i = slices.IndexFunc(m.blocks, func(b Block) bool { return b.Free(r.Now) }); i < 0 {
				return NoneFree(m.blocks, r.Now)
			}
			m.blocks[i], err = m.blocks[i].Acquire(Shorten(r, m.about))
		}
		g = lease.Grant(m.blocks[i])
		return err
	})
	return g, err
}

// Renew implements [lease.Store].
func (m *Memory) Renew(ctx context.Context, g lease.Grant, r lease.Request) (lease.Grant, error) {
	if err := CheckRequest(r, m.now()); err != nil {
		return lease.Grant{}, err
	}
	return m.change(ctx, "renew", g.Node, func(b Block) (Block, error) { return b.Renew(g, Shorten(r, m.about)) })
}

// Release implements [lease.Store].
func (m *Memory) Release(ctx context.Context, g lease.Grant, nonce string, unused time.Time) error {
	_, err := m.change(ctx, "release", g.Node, func(b Block) (Block, error) { return b.Release(g, nonce, unused) })
	return err
}

// Get implements [lease.Store].
func (m *Memory) Get(ctx context.Context, node uint32) (lease.Grant, error) {
	return m.change(ctx, "get", node, func(b Block) (Block, error) { return b, nil })
}

// List implements [lease.Admin].
func (m *Memory) List(ctx context.Context) (written []lease.Grant, err error) {
	err = m.do(ctx, "list", func() error {
		for _, b := range m.blocks {
			if b.Version > 0 {
				written = append(written, lease.Grant(b))
			}
		}
		return nil
	})
	return written, err
}

// Raise implements [lease.Admin].
func (m *Memory) Raise(ctx context.Context, until time.Time) (time.Time, error) {
	if err := CheckRaise(until); err != nil {
		return time.Time{}, err
	}
	now := m.now()
	if now.IsZero() {
		now = time.Now()
	}
	err := m.do(ctx, "raise", func() error {
		until = RaiseTo(m.about, until, now)
		m.about.Raised = until
		for i, b := range m.blocks {
			m.blocks[i] = b.Raise(until)
		}
		return nil
	})
	return until, err
}

// Time implements [lease.Admin].
func (m *Memory) Time(context.Context) (time.Time, error) { return m.now(), nil }

// now returns the store's time, or the zero Time if it has no clock.
func (m *Memory) now() time.Time {
	if m.Clock == nil {
		return time.Time{}
	}
	return m.Clock()
}

// do is every call of a store that exists.
func (m *Memory) do(ctx context.Context, what string, call func() error) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	err := ctx.Err()
	if err == nil && m.about.ID == "" {
		err = lease.ErrNoStore
	}
	if err != nil {
		return fmt.Errorf("lease: memory store: %s: %w", what, err)
	}
	return call()
}

// change applies a rule to the block that starts at a node.
func (m *Memory) change(ctx context.Context, what string, node uint32, rule func(Block) (Block, error)) (g lease.Grant, err error) {
	err = m.do(ctx, what, func() error {
		i, err := RangeOf(m.about).Index(node)
		if err != nil {
			return err
		}
		b, err := rule(m.blocks[i])
		if err == nil {
			m.blocks[i], g = b, lease.Grant(b)
		}
		return err
	})
	return g, err
}
