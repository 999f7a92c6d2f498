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

// WithDescription sets with which description the store is created; zero fields are those of
// [NewDescription], except that the longest TTL is [lease.MaxTTL]. The default has no secrets, so
// that a Keeper may use it with any.
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

// NewMemory returns a store that is created already. If [CheckDescription] refuses its
// description, every call returns the error.
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

// EmptyMemory returns a storage in which Create has yet to create the store. Of the options only
// [WithClock] has an effect.
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
func (m *Memory) Describe(ctx context.Context) (lease.Description, error) {
	unlock, err := m.begin(ctx, "describe")
	if err != nil {
		return lease.Description{}, err
	}
	defer unlock()
	d := m.about
	d.Secrets = slices.Clone(d.Secrets)
	return d, nil
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
	unlock, err := m.begin(ctx, "add a secret")
	if err != nil {
		return err
	}
	defer unlock()
	if !slices.Contains(m.about.Secrets, fingerprint) {
		m.about.Secrets = append(m.about.Secrets, fingerprint)
	}
	return nil
}

// Close implements [Store].
func (m *Memory) Close(context.Context) error { return nil }

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
		return lease.Grant(m.blocks[i]), nil
	}
	i := slices.IndexFunc(m.blocks, func(b Block) bool { return b.Free(r.Now) })
	if i < 0 {
		return lease.Grant{}, fmt.Errorf("%w: all %d are granted", lease.ErrNoFreeNode, len(m.blocks))
	}
	return m.put(i, func(b Block) (Block, error) { return b.Acquire(Shorten(r, m.about)) })
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
func (m *Memory) List(ctx context.Context) ([]lease.Grant, error) {
	unlock, err := m.begin(ctx, "list")
	if err != nil {
		return nil, err
	}
	defer unlock()
	var written []lease.Grant
	for _, b := range m.blocks {
		if b.Version > 0 {
			written = append(written, lease.Grant(b))
		}
	}
	return written, nil
}

// Raise implements [lease.Admin].
func (m *Memory) Raise(ctx context.Context, until time.Time) (time.Time, error) {
	if err := CheckRaise(until); err != nil {
		return time.Time{}, err
	}
	unlock, err := m.begin(ctx, "raise")
	if err != nil {
		return time.Time{}, err
	}
	defer unlock()
	now := m.now()
	if now.IsZero() {
		now = time.Now()
	}
	m.about.Raised = RaiseTo(m.about, until, now)
	for i, b := range m.blocks {
		m.blocks[i] = b.Raise(m.about.Raised)
	}
	return m.about.Raised, nil
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
	if m.wrong != nil {
		return nil, m.wrong
	}
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("lease: memory store: %s: %w", what, err)
	}
	m.mu.Lock()
	if m.about.ID == "" {
		m.mu.Unlock()
		return nil, fmt.Errorf("lease: memory store: %s: %w", what, lease.ErrNoStore)
	}
	return m.mu.Unlock, nil
}

// change applies a rule to the block that starts at a node.
func (m *Memory) change(ctx context.Context, what string, node uint32, rule func(Block) (Block, error)) (lease.Grant, error) {
	unlock, err := m.begin(ctx, what)
	if err != nil {
		return lease.Grant{}, err
	}
	defer unlock()
	i, err := RangeOf(m.about).Index(node)
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
	return lease.Grant(b), nil
}
