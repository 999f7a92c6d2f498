package driver

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/randflake"
)

// Memory is a [lease.Store] within one process, for tests: it forgets everything
// when the process ends. It is safe for concurrent use.
type Memory struct {
	nodes NodeRange
	clock randflake.Clock // nil: the store has no clock

	copied []lease.Block
	mu     sync.Mutex
	blocks []Block
}

var _ interface {
	lease.Store
	lease.Admin
} = (*Memory)(nil)

// MemoryOption configures a [Memory].
type MemoryOption func(*Memory)

// WithNodeRange sets which nodes the store grants; the default is [AllNodes].
func WithNodeRange(r NodeRange) MemoryOption {
	return func(m *Memory) { m.nodes = r }
}

// WithClock gives the store its own clock, of which only Now is called, so that it refuses
// clients whose clocks are ahead. By default, and with nil, it trusts every client's clock.
func WithClock(clock randflake.Clock) MemoryOption {
	return func(m *Memory) { m.clock = clock }
}

// WithBlocks starts the store with the blocks of another store's List, as a copy of it would.
// Blocks outside the range are left out.
func WithBlocks(blocks []lease.Block) MemoryOption {
	return func(m *Memory) { m.copied = blocks }
}

// NewMemory returns a store that is empty unless [WithBlocks] fills it. If [NodeRange.Check]
// refuses the range, every call returns its error.
func NewMemory(opts ...MemoryOption) *Memory {
	m := &Memory{nodes: AllNodes}
	for _, opt := range opts {
		opt(m)
	}
	if m.nodes.Check() == nil {
		m.blocks = make([]Block, m.nodes.Blocks())
		for i := range m.blocks {
			m.blocks[i] = m.nodes.Block(i)
		}
		for _, b := range m.copied {
			if i, err := m.nodes.Index(b.Node); err == nil && b.Nodes == m.nodes.BlockSize {
				m.blocks[i] = Block(b)
			}
		}
	}
	return m
}

// Acquire implements [lease.Store]. It takes the free block with the lowest nodes.
func (m *Memory) Acquire(ctx context.Context, r lease.Request) (lease.Grant, error) {
	if err := CheckRequest(r, m.now()); err != nil {
		return lease.Grant{}, err
	}
	unlock, err := m.begin(ctx, "acquire")
	if err != nil {
		return lease.Grant{}, err
	}
	defer unlock()
	if i := slices.IndexFunc(m.blocks, func(b Block) bool { return b.Nonce == r.Nonce }); i >= 0 {
		return m.blocks[i].Grant(), nil
	}
	i := slices.IndexFunc(m.blocks, func(b Block) bool { return b.Free(r.Now) })
	if i < 0 {
		return lease.Grant{}, fmt.Errorf("%w: all %d are granted", lease.ErrNoFreeNode, len(m.blocks))
	}
	return m.put(i, func(b Block) (Block, error) { return b.Acquire(r) })
}

// Renew implements [lease.Store].
func (m *Memory) Renew(ctx context.Context, g lease.Grant, r lease.Request) (lease.Grant, error) {
	if err := CheckRequest(r, m.now()); err != nil {
		return lease.Grant{}, err
	}
	return m.change(ctx, "renew", g.Node, func(b Block) (Block, error) { return b.Renew(g, r) })
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
func (m *Memory) List(ctx context.Context) ([]lease.Block, error) {
	unlock, err := m.begin(ctx, "list")
	if err != nil {
		return nil, err
	}
	defer unlock()
	var written []lease.Block
	for _, b := range m.blocks {
		if b.Version > 0 {
			written = append(written, lease.Block(b))
		}
	}
	return written, nil
}

// Raise implements [lease.Admin].
func (m *Memory) Raise(ctx context.Context, until time.Time) error {
	if err := CheckRaise(until); err != nil {
		return err
	}
	unlock, err := m.begin(ctx, "raise")
	if err != nil {
		return err
	}
	defer unlock()
	for i, b := range m.blocks {
		m.blocks[i] = b.Raise(until)
	}
	return nil
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

func (m *Memory) begin(ctx context.Context, what string) (unlock func(), err error) {
	if err := m.nodes.Check(); err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("lease: memory store: %s: %w", what, err)
	}
	m.mu.Lock()
	return m.mu.Unlock, nil
}

// change applies a rule to the block that starts at a node.
func (m *Memory) change(ctx context.Context, what string, node uint32, rule func(Block) (Block, error)) (lease.Grant, error) {
	unlock, err := m.begin(ctx, what)
	if err != nil {
		return lease.Grant{}, err
	}
	defer unlock()
	i, err := m.nodes.Index(node)
	if err != nil {
		return lease.Grant{}, err
	}
	return m.put(i, rule)
}

func (m *Memory) put(i int, rule func(Block) (Block, error)) (lease.Grant, error) {
	b, err := rule(m.blocks[i])
	if err != nil {
		return lease.Grant{}, err
	}
	m.blocks[i] = b
	return b.Grant(), nil
}
