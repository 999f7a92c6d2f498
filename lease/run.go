package lease

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/traceflake/traceflake/internal/reports"
	"github.com/traceflake/traceflake/randflake"
)

const (
	minBackoff = 50 * time.Millisecond
	maxBackoff = 10 * time.Second
	// maxFull is that of a store without a free block: it may have to read everything to say so.
	maxFull = time.Minute
	// reseeding is how long no nonce is drawn after a restore was noticed. A kernel learns of it
	// within some tens of milliseconds.
	reseeding = 500 * time.Millisecond
	// lookEvery is the longest time between two comparisons of the clocks: clocks that drift apart
	// over days are not a step.
	lookEvery = time.Minute
)

// run is the Keeper's goroutine.
func (k *Keeper) run(ctx context.Context) {
	defer close(k.stopped)
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		case <-k.kick:
		}
		timer.Reset(k.step(ctx))
	}
}

// step does what is due and returns how long to wait for the next time.
func (k *Keeper) step(ctx context.Context) time.Duration {
	k.sweep()
	if k.short() && k.cfg.clock.Elapsed() >= k.askAt {
		k.acquire(ctx)
		k.sweep() // time has passed
	}
	for _, t := range slices.Clone(k.terms) {
		if ctx.Err() != nil || t.over.Load() != nil || t.raised || k.cfg.clock.Elapsed() < t.renewAt {
			continue
		}
		// With a stepped clock nothing is renewed or given back.
		now, ok := t.look()
		switch {
		case !ok, !now.wall.Before(t.grant.End): // which may have come during another term's request
		case k.spare(t):
			if err := k.giveBack(ctx, t); err != nil {
				k.failed(ctx, "release", err)
			}
		default:
			k.renew(ctx, t, now.wall)
		}
	}
	k.sweep()
	return k.untilNext()
}

// sweep ends the terms whose lease is over and removes those that have ended.
func (k *Keeper) sweep() {
	kept := slices.DeleteFunc(slices.Clone(k.terms), func(t *term) bool {
		if t.over.Load() == nil {
			if at, ok := t.look(); ok && !at.wall.Before(t.grant.End) {
				t.finish(nil)
				k.noLease = randflake.ErrLeaseExpired
			}
		}
		over := t.over.Load()
		if over == nil {
			return false
		}
		if over.dropped != nil {
			k.noLease = ErrNoLease
			k.report(over.dropped)
		}
		k.used[t.node] = t.gen.Seal()
		return true
	})
	if len(kept) != len(k.terms) {
		k.terms = kept
		k.publish()
	}
}

// short reports whether another block is needed: none can be renewed, or all of them are
// borrowing.
func (k *Keeper) short() bool {
	renewable, idle := 0, 0
	now := k.cfg.clock.Now().Unix()
	for _, t := range k.terms {
		if !t.raised {
			renewable++
		}
		if t.busy.Load() < now-1 {
			idle++
		}
	}
	return renewable == 0 || idle == 0 && len(k.terms) < k.cfg.maxBlocks
}

// spare reports whether a term due for renewal is not needed: another is left, and none has
// borrowed for half a TTL.
func (k *Keeper) spare(t *term) bool {
	since := k.cfg.clock.Now().Add(-k.cfg.ttl / 2).Unix()
	others := 0
	for _, other := range k.terms {
		if other.busy.Load() >= since {
			return false
		}
		if other != t && other.proven && !other.raised && other.over.Load() == nil {
			others++
		}
	}
	return others > 0
}

// untilNext is the time until something is due.
func (k *Keeper) untilNext() time.Duration {
	now := read(k.cfg.clock)
	next := now.elapsed + lookEvery
	if k.short() {
		next = min(next, k.askAt)
	}
	for _, t := range k.terms {
		next = min(next, now.elapsed+t.grant.End.Sub(now.wall))
		if !t.raised {
			next = min(next, t.renewAt)
		}
	}
	return max(next-now.elapsed, 0)
}

func (k *Keeper) request(nonce string, now time.Time) Request {
	return Request{Nonce: nonce, Now: now, TTL: k.cfg.ttl, Owner: k.cfg.owner}
}

// bid is an Acquire that was not granted yet. It keeps its nonce, so that a grant is found again
// if the response was lost.
type bid struct {
	nonce      string  // "" before the first try
	last       reading // of the clocks, before the last try
	unanswered bool    // a try may have been granted
}

// acquire requests one more block. A grant acquired with a repeated nonce may have been found by
// a copy of this process as well, so its term is proven only by a renewal that the store
// acknowledges.
//
// After a restore it waits, and then draws a new nonce: copies may draw the same ones until their
// kernels learn of it. The life is read before the nonce is drawn, so that a grant requested in
// an unnoticed restore generates no IDs.
func (k *Keeper) acquire(ctx context.Context) {
	if life := k.cfg.machine(); life != k.life {
		k.life, k.bid = life, bid{}
		k.askAt = k.cfg.clock.Elapsed() + k.reseeding
		return
	}
	if !k.known {
		if err := k.open(ctx); err != nil {
			k.askAt = k.cfg.clock.Elapsed() + k.backoff(&k.failures, maxBackoff)
			k.failed(ctx, "open the store", err)
			return
		}
		k.known = true
	}
	repeated := k.bid.nonce != ""
	if !repeated {
		k.bid.nonce = k.nonce()
	}
	before := read(k.cfg.clock)
	k.bid.last = before
	g, err := k.store.Acquire(ctx, k.request(k.bid.nonce, before.wall))
	longest := maxBackoff
	if errors.Is(err, ErrNoFreeNode) {
		longest = maxFull
	}
	k.askAt = k.cfg.clock.Elapsed() + k.backoff(&k.failures, longest)
	if err != nil {
		refused := errors.Is(err, ErrNoFreeNode) || errors.Is(err, ErrMisconfigured)
		k.bid.unanswered = k.bid.unanswered || !refused
		k.failed(ctx, "acquire", err)
		return
	}
	k.bid = bid{}
	if !before.wall.Before(g.End) {
		return // over already: the nonce may have been granted long ago
	}
	if k.collides(g) {
		return
	}
	t, err := k.newTerm(g, before, k.life)
	if err != nil {
		k.failed(ctx, "acquire", err)
		return
	}
	k.terms = append(k.terms, t)
	if repeated {
		t.renewAt = k.cfg.clock.Elapsed()
		return
	}
	k.prove(t)
}

// open reads the codec, if it is the store's own, and compares it with the store's description.
func (k *Keeper) open(ctx context.Context) (err error) {
	if k.store.codec == nil {
		limited, cancel := context.WithTimeout(ctx, callTimeout)
		defer cancel()
		if k.store.codec, err = k.cfg.codec(limited); err != nil {
			return err
		}
	}
	_, err = k.store.Describe(ctx)
	return err
}

// collides reports whether a new grant has seconds that an earlier term used or that belong to
// one still held: a copy of this process gave them back. Neither grant is used any more. A term
// that another goroutine has dropped is held until the next sweep.
func (k *Keeper) collides(g Grant) bool {
	if g.Start.Before(k.used[g.Node]) {
		return true
	}
	for _, t := range k.terms {
		if t.node == g.Node && g.Start.Before(t.grant.End) {
			k.drop(t, cloned, fmt.Errorf("%w: node %d was granted again before the grant's end: "+
				"a copy of this process gave it back", ErrCloned, g.Node))
			return true
		}
	}
	return false
}

// prove allows IDs to be generated with a term that no other process holds: the store has just
// acknowledged it. The next renewal is at half of the time left, plus or minus a tenth.
func (k *Keeper) prove(t *term) {
	if k.failure.Swap(nil) != nil {
		k.report(errRecovered)
	}
	now := read(k.cfg.clock)
	half := float64(t.grant.End.Sub(now.wall)) / 2
	// Do not call a store all the time if it grants very short leases.
	t.failures, t.renewAt = 0, now.elapsed+max(time.Duration(half*(0.9+0.2*k.jitter())), k.cfg.ttl/20)
	if !t.proven {
		t.proven, k.failures, k.askAt = true, 0, now.elapsed
	}
	k.publish()
	k.readying.Do(func() { close(k.ready) })
}

// renew moves a term's end, under a fresh nonce. Without an acknowledgement the stored block
// decides: the response may have been lost, or an earlier renewal may have been late.
func (k *Keeper) renew(ctx context.Context, t *term, now time.Time) {
	nonce := k.nonce()
	g, err := k.store.Renew(ctx, t.grant, k.request(nonce, now))
	said := written
	if err != nil {
		if !errors.Is(err, ErrLost) {
			t.pending = append(t.pending, nonce)
		}
		stored, getErr := k.store.Get(ctx, t.node)
		if getErr != nil {
			k.retry(ctx, t, err)
			return
		}
		g, said = stored, t.meaning(stored)
	} else if g.Version < t.grant.Version || g.End.Before(t.grant.End) {
		said = forgotten
	}
	switch said {
	case written, late:
		_ = t.gen.Extend(g.End) // which a generator that was sealed meanwhile refuses
		t.confirmed = confirmed{grant: g}
		if said == written {
			k.prove(t)
			return
		}
		// Renew again soon: a copy may have written this nonce as well.
		t.renewAt = k.cfg.clock.Elapsed() + k.backoff(&t.failures, time.Second)
	case unwritten:
		k.retry(ctx, t, err)
	case raised:
		t.raised = true
		k.failed(ctx, "renew", fmt.Errorf("node %d: an operator raised the store: the lease is used until %s, and another one acquired",
			t.node, text(t.grant.End)))
	default:
		why, err := said.explain(t.grant, g)
		k.drop(t, why, err)
	}
}

func (k *Keeper) retry(ctx context.Context, t *term, err error) {
	t.renewAt = k.cfg.clock.Elapsed() + k.backoff(&t.failures, maxBackoff)
	k.failed(ctx, "renew", err)
}

// giveBack seals a term and returns its unused seconds.
func (k *Keeper) giveBack(ctx context.Context, t *term) error {
	unused, first := t.finish(nil)
	if !first || !t.alive() {
		return nil // dropped meanwhile, or restored: a copy of this process may still use it
	}
	k.sweep()
	return k.store.Release(ctx, t.grant, k.nonce(), unused)
}

// giveBackBid gives back what an Acquire that failed may have been granted: otherwise the block
// would stay unused for a TTL. A copy of this process may have received a response, and use the
// grant, whose nonce is the same. So a bid is left alone if the machine was restored or the
// clocks diverged since it was sent, and only seconds in the future are given back: a copy that
// was not noticed loses the grant at its next renewal, as after any other release.
func (k *Keeper) giveBackBid(ctx context.Context) error {
	now := read(k.cfg.clock)
	gap := time.Duration(now.offset() - k.bid.last.offset())
	if !k.bid.unanswered || k.cfg.machine() != k.life || gap.Abs() > maxClockGap {
		return nil
	}
	if g, err := k.store.Acquire(ctx, k.request(k.bid.nonce, now.wall)); err == nil {
		unused := now.wall
		if used := k.used[g.Node]; used.After(unused) {
			unused = used // with an earlier grant, which a copy gave back
		}
		return k.store.Release(ctx, g, k.nonce(), unused)
	}
	return nil // nothing was granted, or the store is unavailable
}

// giveBackAll ends every term; the goroutine has ended.
func (k *Keeper) giveBackAll(ctx context.Context) error {
	var errs []error
	k.sweep()
	for _, t := range slices.Clone(k.terms) {
		if !t.raised {
			errs = append(errs, k.giveBack(ctx, t))
		}
	}
	k.terms = nil
	return errors.Join(append(errs, k.giveBackBid(ctx))...)
}

// backoff doubles with every failure in a row, up to a bound; jitter spreads the clients of a
// store that comes back.
func (k *Keeper) backoff(failures *int, longest time.Duration) time.Duration {
	d := min(minBackoff<<min(*failures, 11), longest, k.cfg.ttl/8)
	*failures++
	return time.Duration(float64(d) * (0.5 + k.jitter()))
}

// errRecovered is reported after a failure.
var errRecovered error = reports.Recovered("lease: recovered: the store grants and renews leases")

// failed reports a failure when it begins.
func (k *Keeper) failed(ctx context.Context, what string, err error) {
	if ctx.Err() != nil {
		return // closing
	}
	err = fmt.Errorf("lease: %s: %w", what, err)
	if k.failure.Swap(&err) == nil {
		k.report(err)
	}
}
