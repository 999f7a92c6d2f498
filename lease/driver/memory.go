package driver

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/randflake"
)

// Memory is a [Store] within one process, for tests: it forgets everything when the process
// ends. It is safe for concurrent use.
type Memory struct {
	clock randflake.Clock // nil: the store has no clock
	wrong error           // of the description

	copied []lease.Grant
	mu     sync.Mutex
	about  lease.Description // the ID is "" until it is created
	blocks []Block
}

var _ Store = (*Memory)(nil)

// MemoryOption configures a [Memory].
type MemoryOption func(*Memory)

// WithDescription sets the store's description; zero fields are filled in as by [NewDescription],
// except that the longest TTL is [lease.MaxTTL]. By default there are no secrets, so that a Keeper may
// use any.
func WithDescription(d lease.Description) MemoryOption {
	return func(m *Memory) { m.about = d }
}

// WithNodeRange sets which nodes the store grants; the default is [AllNodes].
func WithNodeRange(r NodeRange) MemoryOption {
	return func(m *Memory) { m.about.First, m.about.Nodes, m.about.BlockSize = r.First, r.Nodes, r.BlockSize }
}

// WithClock gives the store its own clock, of which only Now is called, so that it refuses
// clients whose clocks are ahead. By default, and with nil, it trusts every client's clock.
func WithClock(clock randflake.Clock) MemoryOption {
	return func(m *Memory) { m.clock = clock }
}

// WithBlocks starts the store with the blocks of another store's List, as a copy of it would.
// Blocks outside the range are left out.
func WithBlocks(blocks []lease.Grant) MemoryOption {
	return func(m *Memory) { m.copied = blocks }
}

// NewMemory returns a store that already exists. If its description is invalid, every call returns the
// error of [CheckDescription].
func NewMemory(opts ...MemoryOption) *Memory {
	m := EmptyMemory(opts...)
	m.about.LongestTTL = cmp.Or(m.about.LongestTTL, lease.MaxTTL)
	d, err := NewDescription(m.about)
	if m.about = (lease.Description{}); err == nil {
		err = m.Create(context.Background(), d)
	}
	if m.wrong = err; err != nil {
		return m
	}
	for _, b := range m.copied {
		if i, err := RangeOf(d).Index(b.Node); err == nil && b.Nodes == d.BlockSize {
			m.blocks[i] = Block(b)
		}
	}
	return m
}

// EmptyMemory returns a storage without a store, for Create. Of the options only [WithClock] has an
// effect.
func EmptyMemory(opts ...MemoryOption) *Memory {
	m := new(Memory)
	for _, opt := range opts {
		if opt != nil {
			opt(m)
		}
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
	err := cmp.Or(m.wrong, CheckDescription(d), ctx.Err())
	if err != nil {
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
		if i >= 0 {
			g = lease.Grant(m.blocks[i])
			return nil
		}
		if i = slices.IndexFunc(m.blocks, func(b Block) bool { return b.Free(r.Now) }); i < 0 {
			return fmt.Errorf("%w: all %d are granted", lease.ErrNoFreeNode, len(m.blocks))
		}
		g, err = m.put(i, func(b Block) (Block, error) { return b.Acquire(Shorten(r, m.about)) })
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
	if m.clock == nil {
		return time.Time{}
	}
	return m.clock.Now()
}

// do is every call of a store that exists.
func (m *Memory) do(ctx context.Context, what string, call func() error) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	err := cmp.Or(m.wrong, ctx.Err())
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
		if err == nil {
			g, err = m.put(i, rule)
		}
		return err
	})
	return g, err
}

func (m *Memory) put(i int, rule func(Block) (Block, error)) (lease.Grant, error) {
	b, err := rule(m.blocks[i])
	if err != nil {
		return lease.Grant{}, err
	}
	m.blocks[i] = b
	return lease.Grant(b), nil
}
