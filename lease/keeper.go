package lease

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
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
	ErrNoLease = fmt.Errorf("lease: %w", randflake.ErrNoLease)
	// ErrClosed is returned after Close. It wraps [randflake.ErrSealed].
	ErrClosed = fmt.Errorf("lease: the keeper is closed: %w", randflake.ErrSealed)
)

// Keeper holds leases and generates IDs with them. Its one goroutine acquires grants from the
// store, renews them at half their time, acquires more if it is busy and gives them back if it is
// not.
//
// While the store is unreachable, IDs are generated until the end of the lease; then Next and
// Fill return [randflake.ErrLeaseExpired] until it is back.
//
// Keeper is safe for concurrent use. Next and Fill do no I/O. A zero Keeper refuses with
// [ErrNoLease].
type Keeper struct {
	store   calls
	cfg     config
	metrics metric.Registration // of the leases held

	restores   atomic.Uint64 // of which the Keeper was told
	held       atomic.Pointer[held]
	kick       chan struct{} // wakes the goroutine
	generation atomic.Uint64

	ready    chan struct{} // closed with the first grant
	readying sync.Once
	failure  atomic.Pointer[error]
	stop     context.CancelFunc
	stopped  chan struct{} // closed when the goroutine has ended
	closing  sync.Once
	closeErr error

	// Only the goroutine uses the fields below, and Close after it has ended.
	terms    []*term
	used     map[uint32]time.Time // by node, the end of what earlier terms used
	noLease  error                // why none is left
	known    bool                 // the store was described, and has the secret registered
	bid      bid
	life     uint64        // the machine's, as far as the Keeper knows
	askAt    time.Duration // not before this on the monotonic clock
	failures int           // Acquires in a row

	// What tests replace.
	reports   reports.Queue
	report    func(error) // queues a report
	jitter    func() float64
	nonce     func() string
	reseeding time.Duration
}

// held is the state with which IDs are generated. Apart from turn it is replaced, never changed.
type held struct {
	terms []*term
	turn  atomic.Uint32 // which term comes first
	end   time.Time     // of the last lease
	err   error         // why there is none
}

// Start starts a Keeper and returns at once, whether the store answers or not. It fails only if
// the configuration is invalid. Calls of the store get ctx's values; cancelling ctx does not end
// the Keeper, [Keeper.Close] does.
func Start(ctx context.Context, s Store, c *randflake.Codec, opts ...Option) (*Keeper, error) {
	k, err := newKeeper(s, c, opts...)
	if err != nil {
		return nil, err
	}
	ctx, k.stop = context.WithCancel(context.WithoutCancel(ctx))
	go k.run(ctx)
	return k, nil
}

// newKeeper returns a Keeper without its goroutine.
func newKeeper(s Store, c *randflake.Codec, opts ...Option) (*Keeper, error) {
	if s == nil {
		return nil, errors.New("lease: no store")
	}
	cfg, err := newConfig(opts)
	if err != nil {
		return nil, err
	}
	if c != nil || cfg.codec == nil {
		if _, err := c.Encode(randflake.Parts{Time: time.Unix(randflake.Epoch, 0)}); err != nil {
			return nil, fmt.Errorf("lease: %w", err) // it has no secret
		}
	}
	k := &Keeper{
		store:     calls{s, c, newCounts()},
		cfg:       cfg,
		life:      cfg.machine(),
		kick:      make(chan struct{}, 1),
		ready:     make(chan struct{}),
		stop:      func() {},
		stopped:   make(chan struct{}),
		used:      make(map[uint32]time.Time),
		noLease:   ErrNoLease,
		reports:   reports.Queue{Handle: cfg.report},
		jitter:    rand.Float64,
		nonce:     NewNonce,
		reseeding: reseeding,
		askAt:     cfg.clock.Elapsed(), // Elapsed may count from any moment
	}
	k.report = k.reports.Add
	k.cfg.machine = func() uint64 {
		return cfg.machine() + k.restores.Load()*0x9e3779b97f4a7c15 // a step of either changes the sum
	}
	k.held.Store(&held{err: k.noLease})
	if k.metrics, err = k.register(cfg.meters); err != nil {
		return nil, fmt.Errorf("lease: metrics: %w", err)
	}
	return k, nil
}

// Ready returns nil if a lease is held now, even if its IDs of this second are used up. Before
// the first grant it waits for one; the error then wraps that of ctx. After the first grant it
// does not wait: the error is the one that Next would return, and wraps the store's last error
// too, if any. It takes no ID.
func (k *Keeper) Ready(ctx context.Context) error {
	if k.store.Store == nil {
		return ErrNoLease
	}
	select {
	case <-k.ready:
	default:
		select {
		case <-k.ready:
		case <-k.stopped:
		case <-ctx.Done():
			return k.because(fmt.Errorf("lease: no grant yet: %w", ctx.Err()))
		}
	}
	h := k.current()
	err := h.err
	for _, t := range h.terms {
		refusal := t.gen.Check()
		if refusal == nil || errors.Is(refusal, randflake.ErrExhausted) {
			return nil
		}
		k.note(t, refusal)
		if !errors.Is(refusal, randflake.ErrSealed) { // which is not for users
			err = refusal
		}
	}
	return k.because(err)
}

// because adds the store's last error to err.
func (k *Keeper) because(err error) error {
	if failure := k.Failure(); failure != nil && !errors.Is(err, ErrClosed) {
		return fmt.Errorf("%w; the store says: %w", err, failure)
	}
	return err
}

// nothing is what a zero Keeper holds.
var nothing = &held{err: ErrNoLease}

// current returns what is held now.
func (k *Keeper) current() *held {
	if h := k.held.Load(); h != nil {
		return h
	}
	return nothing
}

// Failure returns the store's last error, or nil if the store granted or renewed a lease since.
func (k *Keeper) Failure() error {
	if failure := k.failure.Load(); failure != nil {
		return *failure
	}
	return nil
}

// Next generates one ID. Errors: [ErrNoLease], [ErrClosed] and those of
// [randflake.Generator.Next].
func (k *Keeper) Next() (randflake.ID, error) {
	var one [1]randflake.ID
	_, _, err := k.Fill(one[:])
	return one[0], err
}

// Fill generates len(dst) IDs of one second; see [randflake.Generator.Fill]. It
// returns len(dst) and their second, or 0 and an error: [ErrNoLease],
// [ErrClosed] and those of the generator.
func (k *Keeper) Fill(dst []randflake.ID) (n int, second time.Time, err error) {
	for h := k.current(); ; {
		err = h.err
		first := h.turn.Load()
		for i := range uint32(len(h.terms)) {
			t := h.terms[(first+i)%uint32(len(h.terms))]
			n, second, refusal := t.gen.Fill(dst)
			if refusal == nil && second.Unix() <= t.second.Load() {
				return n, second, nil
			}
			k.note(t, refusal)
			if refusal == nil {
				// It borrowed: others come first until they have borrowed, too.
				h.turn.CompareAndSwap(first, first+i+1)
				return n, second, nil
			}
			if !errors.Is(refusal, randflake.ErrSealed) { // which is not for users
				err = refusal
			}
		}
		now := k.current()
		if now == h {
			return 0, time.Time{}, err
		}
		h = now // the terms were replaced in the meantime
	}
}

// note passes on what a term's error means for the goroutine.
func (k *Keeper) note(t *term, err error) {
	switch {
	case errors.Is(err, randflake.ErrClockBehind):
		k.drop(t, clockBehind, fmt.Errorf("lease: node %d: %w", t.node, err))
	case err == nil, errors.Is(err, randflake.ErrExhausted):
		// Once a second is enough.
		if now := t.second.Load(); t.busy.Swap(now) != now {
			k.wake()
		}
	}
}

// Generation changes when a grant is dropped: this machine was suspended or cloned, its clock was
// stepped, or the store granted the block to another process. Discard IDs that Fill returned
// before and that are not used yet.
func (k *Keeper) Generation() uint64 { return k.generation.Load() }

// OnRestore must be called after this process was restored from a snapshot. When it returns, no ID
// is generated with a grant that was requested before, and answers to earlier requests are not
// used. The next grant follows as after a start.
func (k *Keeper) OnRestore() {
	k.restores.Add(1)
	for _, t := range k.current().terms {
		t.alive()
	}
}

// Close seals the generators, so that no ID is generated after it, ends the goroutine and the
// metrics, and gives the unused seconds back to the store. If ctx ends first, or the response to
// the last renewal was lost, an error is returned and the block stays unused until the lease's end. Further calls return the same
// result.
func (k *Keeper) Close(ctx context.Context) error {
	if k.store.Store == nil {
		return nil
	}
	k.closing.Do(func() {
		k.seal()
		k.stop()
		select {
		case <-k.stopped:
			k.closeErr = k.giveBackAll(ctx)
		case <-ctx.Done():
			k.closeErr = fmt.Errorf("lease: close: the store did not answer: %w", ctx.Err())
		}
		_ = k.metrics.Unregister()
		k.reports.Flush()
	})
	return k.closeErr
}

// seal ends the generation of IDs.
func (k *Keeper) seal() { k.held.Swap(&held{err: ErrClosed}).seal() }

func (h *held) seal() {
	for _, t := range h.terms {
		t.gen.Seal()
	}
}

// publish makes the usable terms visible to Next and Fill, unless the Keeper is closed.
func (k *Keeper) publish() {
	h := &held{err: k.noLease}
	for _, t := range k.terms {
		if t.proven && t.over.Load() == nil {
			h.terms, h.err = append(h.terms, t), ErrNoLease
			if end := t.grant.End; end.After(h.end) {
				h.end = end
			}
		}
	}
	if now := k.held.Load(); errors.Is(now.err, ErrClosed) || !k.held.CompareAndSwap(now, h) {
		h.seal() // only Close replaces what is held as well
	}
}

// drop ends a term whose grant must be neither used nor given back: after a clone two processes
// hold it. Any goroutine may call it.
func (k *Keeper) drop(t *term, why reason, err error) {
	if _, first := t.finish(err); first {
		k.store.counts.add(series{reason: why})
		k.generation.Add(1)
		k.wake()
	}
}

func (k *Keeper) wake() {
	select {
	case k.kick <- struct{}{}:
	default:
	}
}
