package lease

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/metric"

	"github.com/traceflake/traceflake/internal/reports"
	"github.com/traceflake/traceflake/randflake"
)

// Errors with which a [Keeper] refuses, in addition to those of its generators.
var (
	// ErrNoLease is returned if no grant is held: the store has not answered yet, or the grant was
	// dropped. Wait; the Keeper retries by itself. It wraps [randflake.ErrNoLease].
	ErrNoLease error = refusal{"lease: no lease is held", randflake.ErrNoLease}
	// ErrClosed is returned after Close, by a Keeper and by a store. It wraps
	// [randflake.ErrSealed].
	ErrClosed error = refusal{"lease: closed", randflake.ErrSealed}
)

// refusal is a generator's error with a text of its own.
type refusal struct {
	text  string
	cause error
}

func (r refusal) Error() string { return r.text }
func (r refusal) Unwrap() error { return r.cause }

// Keeper holds a lease of one block and generates IDs with it. Its one goroutine acquires a grant
// from the store and renews it at half its time. If a process needs more IDs a second than a block
// has, create a store with larger blocks.
//
// While the store is unreachable, IDs are generated until the end of the lease; then Next and
// Fill return [randflake.ErrLeaseExpired] until it is back.
//
// Keeper is safe for concurrent use. Next and Fill do no I/O. A zero Keeper refuses with
// [ErrNoLease].
type Keeper struct {
	cfg       config
	nodesOnly bool // it was started without secrets
	metrics   metric.Registration
	reports   reports.Queue

	changing   sync.Mutex // held while the state is replaced, and counts are used
	state      atomic.Pointer[state]
	generation atomic.Uint64
	restores   atomic.Uint64 // reported by OnRestore
	// counts are read on collection, so that events before a meter provider is set are not lost.
	counts map[series]int64
	kick   chan struct{} // wakes the goroutine

	// settled is closed with the first grant, the first error that is Permanent, and by Close. It
	// is nil in a zero Keeper.
	settled chan struct{}
	closing sync.Once
	settle  func() // closes it

	stop context.CancelFunc // ends the goroutine
}

// state is what other goroutines know of a Keeper's. It is replaced, never changed.
type state struct {
	term *term // with which IDs are generated; nil if there is none
	// why there is none, or, if the term was dropped in the meantime, that there is none
	err       error
	codec     *randflake.Codec // of the last term; nil before the first one
	about     Description      // as the Keeper has last entered it; without an ID before
	histories []History        // of the store, as far as they are known
	failure   error            // the store's last; nil if it has granted or renewed a lease since
	behind    time.Duration    // the last [Grant.Behind]
}

// current returns the current state, also of a zero Keeper.
func (k *Keeper) current() *state {
	if s := k.state.Load(); s != nil {
		return s
	}
	return &state{err: ErrNoLease}
}

// change replaces the state, unless the Keeper is closed, and returns the earlier one.
func (k *Keeper) change(f func(*state)) (was *state, open bool) {
	k.changing.Lock()
	defer k.changing.Unlock()
	was = k.current()
	if errors.Is(was.err, ErrClosed) {
		return was, false
	}
	now := *was
	f(&now)
	k.state.Store(&now)
	return was, true
}

// ttl returns the length of the leases to request: as configured, or the store's longest.
func (k *Keeper) ttl() time.Duration {
	return min(k.cfg.ttl, cmp.Or(k.current().about.LongestTTL, MaxTTL))
}

// Secrets returns the secrets of a process: a history of a store has one of them, see
// [History.Codec]. A [Keeper] calls it before its first lease, and again for each history: so
// another secret is rolled out by adding it to the file, in any order, before an operator's rekey.
type Secrets func(ctx context.Context) (*randflake.Keyring, error)

// FixedSecrets returns [Secrets] that never change.
func FixedSecrets(k *randflake.Keyring) Secrets {
	return func(context.Context) (*randflake.Keyring, error) { return k, nil }
}

// Start starts a Keeper and returns at once, whether the store answers or not. If secrets is nil,
// the Keeper leases [Nodes] from a store without a secret, and generates no IDs. Start fails only
// if the configuration is invalid. Calls of the store get ctx's values; cancelling ctx does not end
// the Keeper, [Keeper.Close] does.
func Start(ctx context.Context, s Store, secrets Secrets, opts ...Option) (*Keeper, error) {
	l, err := newLoop(s, secrets, opts...)
	if err != nil {
		return nil, err
	}
	ctx, l.keeper.stop = context.WithCancel(context.WithoutCancel(ctx))
	go l.run(ctx)
	return l.keeper, nil
}

// newLoop returns a Keeper whose goroutine does not run.
func newLoop(s Store, secrets Secrets, opts ...Option) (*loop, error) {
	if s == nil {
		return nil, errors.New("lease: no store")
	}
	cfg, err := newConfig(opts)
	if err != nil {
		return nil, err
	}
	k := &Keeper{
		cfg:       cfg,
		counts:    newCounts(),
		reports:   reports.Queue{Handle: cfg.report},
		nodesOnly: secrets == nil,
		kick:      make(chan struct{}, 1),
		settled:   make(chan struct{}),
	}
	k.settle = sync.OnceFunc(func() { close(k.settled) })
	k.cfg.machine = func() uint64 {
		// a step of either changes the sum
		return cfg.machine() + k.restores.Load()*0x9e3779b97f4a7c15
	}
	if k.metrics, err = k.register(cfg.meters); err != nil {
		return nil, fmt.Errorf("lease: metrics: %w", err)
	}
	return &loop{
		keeper:    k,
		store:     s,
		secrets:   secrets,
		machine:   k.cfg.machine(),
		due:       k.cfg.clock().elapsed, // which may count from any moment
		report:    k.reports.Add,
		jitter:    rand.Float64,
		nonce:     NewNonce,
		reseeding: reseeding,
	}, nil
}

// Ready returns nil if a lease is held now, even if its IDs of this second are used up. Before
// the first grant it waits for one, unless the store has returned an error that is [Permanent],
// until ctx ends. The error is the one that Next would return. It also wraps that of ctx if ctx has
// ended and it is [ErrNoLease], and the store's last error, if any. Ready takes no ID.
func (k *Keeper) Ready(ctx context.Context) error {
	_, err := k.ready(ctx)
	return err
}

// ready also returns the term that is held.
func (k *Keeper) ready(ctx context.Context) (*term, error) {
	if k.settled == nil {
		return nil, ErrNoLease
	}
	select {
	case <-k.settled:
	case <-ctx.Done():
	}
	s := k.current()
	err := s.err
	if s.term != nil {
		err = k.refusal(s, s.term.gen.Check())
		if err == nil || errors.Is(err, randflake.ErrExhausted) {
			return s.term, nil
		}
	}
	if errors.Is(err, ErrNoLease) && ctx.Err() != nil {
		err = fmt.Errorf("%w: %w", err, ctx.Err())
	}
	if s.failure != nil {
		err = fmt.Errorf("%w; the store says: %w", err, s.failure)
	}
	return nil, err
}

// Codec returns the codec of new IDs, that of the history of the last lease. It is nil before the
// first lease, and changes with the first one in another history.
func (k *Keeper) Codec() *randflake.Codec { return k.current().codec }

// Histories returns the histories of the store that the Keeper knows, the present one first, the
// others by their beginnings, newest first. It forgets none of them, even if the store has.
func (k *Keeper) Histories() []History { return slices.Clone(k.current().histories) }

// Failure returns the store's last error, or nil if the store granted or renewed a lease since.
func (k *Keeper) Failure() error { return k.current().failure }

// Next generates one ID. Errors: [ErrNoLease], [ErrClosed], [ErrKeyless] and those of
// [randflake.Generator.Next].
func (k *Keeper) Next() (randflake.ID, error) {
	var one [1]randflake.ID
	_, _, err := k.Fill(one[:])
	return one[0], err
}

// Fill generates len(dst) IDs of one second; see [randflake.Generator.Fill]. It
// returns len(dst) and their second, or 0 and an error: [ErrNoLease],
// [ErrClosed], [ErrKeyless] if the Keeper was started without secrets, and those of the generator.
func (k *Keeper) Fill(dst []randflake.ID) (n int, second time.Time, err error) {
	if k.nodesOnly {
		return 0, time.Time{}, fmt.Errorf("%w: this Keeper has no secret for IDs", ErrKeyless)
	}
	for {
		s := k.current()
		if s.term == nil {
			return 0, time.Time{}, s.err
		}
		n, second, err = s.term.gen.Fill(dst)
		err = k.refusal(s, err)
		if err == nil || k.current().term == s.term {
			return n, second, err
		}
	}
}

// refusal returns the error for users when a generator refuses. A clock that is behind ends the
// term.
func (k *Keeper) refusal(s *state, err error) error {
	switch {
	case errors.Is(err, randflake.ErrSealed): // which is not for users
		return s.err
	case errors.Is(err, randflake.ErrClockBehind):
		k.drop(s.term, clockBehind, fmt.Errorf("lease: node %d: %w", s.term.lease.Node, err))
	}
	return err
}

// Generation changes when a grant is dropped: this machine was suspended or cloned, its clock was
// stepped, the store granted the block to another process, or it forgot the grant. Discard IDs that
// Fill returned before and that are not used yet.
func (k *Keeper) Generation() uint64 { return k.generation.Load() }

// OnRestore must be called after this process was restored from a snapshot. When it returns, no ID
// is generated with a grant that was requested before, and answers to earlier requests are not
// used. The next grant follows as after a start.
func (k *Keeper) OnRestore() {
	k.restores.Add(1)
	if t := k.current().term; t != nil {
		t.now()
	}
}

// Close seals the generator, so that no ID is generated after it, and ends the goroutine and the
// metrics. It does not wait for the store. The block stays unused until the lease's end: a program
// that ends without Close loses nothing but its last reports.
func (k *Keeper) Close() {
	if k.settled == nil {
		return
	}
	k.closing.Do(func() {
		k.seal()
		k.settle()
		k.stop()
		_ = k.metrics.Unregister()
		k.reports.Flush()
	})
}

// seal ends the generation of IDs.
func (k *Keeper) seal() {
	was, open := k.change(func(s *state) { s.term, s.err = nil, ErrClosed })
	if open && was.term != nil {
		was.term.end(ErrClosed)
	}
}

// drop ends a term whose grant must not be used any more. Any goroutine may call it.
func (k *Keeper) drop(t *term, why reason, err error) {
	if t.end(err) {
		k.count(series{of: drops, what: string(why)})
		k.generation.Add(1)
		k.wake()
	}
}

// wake lets the goroutine take a step at once.
func (k *Keeper) wake() {
	select {
	case k.kick <- struct{}{}:
	default: // it will do so already
	}
}
