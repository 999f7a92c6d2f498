package lease

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/traceflake/traceflake/internal/reports"
	"github.com/traceflake/traceflake/randflake"
)

const (
	minBackoff = 50 * time.Millisecond
	maxBackoff = 10 * time.Second
	// maxFull is the longest backoff while no block is free: finding that out may mean reading
	// every page.
	maxFull = time.Minute
	// reseeding is how long no nonce is drawn after a restore was noticed. A kernel learns of a
	// restore within some tens of milliseconds.
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
	if k.term == nil && k.cfg.clock.Elapsed() >= k.askAt {
		k.acquire(ctx)
		k.sweep() // time has passed
	}
	if t := k.term; t != nil && t.over.Load() == nil && ctx.Err() == nil &&
		k.cfg.clock.Elapsed() >= t.renewAt {
		// With a stepped clock nothing is renewed.
		if now, ok := t.look(); ok && now.wall.Before(t.grant.End) {
			k.renew(ctx, t, now.wall)
		}
		k.sweep()
	}
	return k.untilNext()
}

// sweep ends the terms whose lease is over and removes those that have ended.
func (k *Keeper) sweep() {
	for _, t := range []**term{&k.raised, &k.term} {
		if *t != nil && k.ended(*t) {
			*t = nil
			k.publish()
		}
	}
}

// ended reports whether a term has ended, ends it at its lease's end, and reports why it was
// dropped.
func (k *Keeper) ended(t *term) bool {
	if t.over.Load() == nil {
		if at, ok := t.look(); ok && !at.wall.Before(t.grant.End) {
			t.finish(nil)
		}
	}
	over := t.over.Load()
	if over == nil {
		return false
	}
	k.noLease = randflake.ErrLeaseExpired
	if over.dropped != nil {
		k.noLease = ErrNoLease
		k.report(over.dropped)
	}
	k.used[t.node] = t.gen.Seal()
	return true
}

// untilNext returns the time until something is due.
func (k *Keeper) untilNext() time.Duration {
	now := read(k.cfg.clock)
	next := now.elapsed + lookEvery
	if k.term == nil {
		next = min(next, k.askAt)
	} else {
		next = min(next, k.term.renewAt)
	}
	for _, t := range []*term{k.raised, k.term} {
		if t != nil {
			next = min(next, now.elapsed+t.grant.End.Sub(now.wall))
		}
	}
	return max(next-now.elapsed, 0)
}

func (k *Keeper) request(nonce string, now time.Time) Request {
	return Request{Nonce: nonce, Now: now, TTL: k.cfg.ttl, Owner: k.cfg.owner}
}

// acquire requests a block. An Acquire that was not granted keeps its nonce, so that a grant is
// found again if the response was lost. A grant acquired with a repeated nonce may have been found
// by a copy of this process as well, so its term is proven only by a renewal that the store
// acknowledges.
//
// After a restore it waits, and then draws a new nonce: copies may draw the same ones until their
// kernels learn of it. The life is read before the nonce is drawn, so that a grant requested in
// an unnoticed restore generates no IDs.
func (k *Keeper) acquire(ctx context.Context) {
	if life := k.cfg.machine(); life != k.life {
		k.life, k.bid = life, ""
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
	repeated := k.bid != ""
	if !repeated {
		k.bid = k.nonce()
	}
	before := read(k.cfg.clock)
	g, err := k.store.Acquire(ctx, k.request(k.bid, before.wall))
	longest := maxBackoff
	if errors.Is(err, ErrNoFreeNode) {
		longest = maxFull
	}
	k.askAt = k.cfg.clock.Elapsed() + k.backoff(&k.failures, longest)
	if err != nil {
		k.failed(ctx, "acquire", err)
		return
	}
	k.bid = ""
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
	k.term = t
	if repeated {
		t.renewAt = k.cfg.clock.Elapsed()
		return
	}
	k.prove(t)
}

// open reads the codec, if it is the store's own, and compares it with the store's description. If
// the configured TTL is longer than the store grants, it uses the store's longest.
func (k *Keeper) open(ctx context.Context) error {
	if k.codec.Load() == nil {
		limited, cancel := context.WithTimeout(ctx, callTimeout)
		defer cancel()
		codec, err := k.own.Ensure(limited)
		if err != nil {
			return err
		}
		k.codec.Store(codec)
	}
	d, err := k.store.Describe(ctx, k.codec.Load())
	if longest := d.LongestTTL; err == nil && longest > 0 && longest < k.cfg.ttl {
		k.report(fmt.Errorf(
			"lease: the store grants leases of at most %s, this process requests %s: "+
				"without the store, leased IDs last for the shorter time only", longest, k.cfg.ttl))
		k.cfg.ttl = longest
	}
	return err
}

// collides reports whether a new grant has seconds that an earlier term used or that belong to
// one still held: a copy of this process gave them back. Neither grant is used any more.
func (k *Keeper) collides(g Grant) bool {
	if g.Start.Before(k.used[g.Node]) {
		return true
	}
	t := k.raised
	if t == nil || t.node != g.Node || !g.Start.Before(t.grant.End) {
		return false
	}
	k.drop(t, cloned, fmt.Errorf("%w: node %d was granted again before the grant's end: "+
		"a copy of this process gave it back", ErrCloned, g.Node))
	return true
}

// prove lets a term generate IDs: the store has just acknowledged that no other process holds it.
// The next renewal is at half of the time left, plus or minus a tenth.
func (k *Keeper) prove(t *term) {
	if k.failure.Swap(nil) != nil {
		k.denied = nil
		k.report(errRecovered)
	}
	now := read(k.cfg.clock)
	half := float64(t.grant.End.Sub(now.wall)) / 2
	t.failures, t.renewAt = 0, now.elapsed+time.Duration(half*(0.9+0.2*k.jitter()))
	if !t.proven {
		t.proven, k.failures, k.askAt = true, 0, now.elapsed
	}
	k.publish()
	if k.raised != nil {
		k.raised.finish(nil)
	}
	closeOnce(k.ready)
}

// closeOnce closes a channel that only the Keeper's goroutine closes.
func closeOnce(c chan struct{}) {
	select {
	case <-c:
	default:
		close(c)
	}
}

// renew moves a term's end.
func (k *Keeper) renew(ctx context.Context, t *term, now time.Time) {
	stored, said, err := k.propose(ctx, t, now)
	switch said {
	case written:
		t.extend(stored)
		k.prove(t)
	case late: // renew again soon: a copy may have written this nonce as well
		t.extend(stored)
		t.renewAt = k.cfg.clock.Elapsed() + k.backoff(&t.failures, time.Second)
	case unwritten:
		t.renewAt = k.cfg.clock.Elapsed() + k.backoff(&t.failures, maxBackoff)
		k.failed(ctx, "renew", err)
	case raised:
		if k.term = nil; t.proven {
			k.raised = t
		}
		k.failed(ctx, "renew", fmt.Errorf("node %d: an operator raised the store: the lease is "+
			"used until %s, and another one acquired",
			t.node, text(t.grant.End)))
	default:
		why, err := said.explain(t.grant, stored)
		k.drop(t, why, err)
	}
}

// propose asks the store to move a term's end, under a fresh nonce. It returns what the store has,
// and what that means. Without an acknowledgement the stored block decides: the response may have
// been lost, or an earlier renewal may have been late.
func (k *Keeper) propose(ctx context.Context, t *term,
	now time.Time) (stored Grant, said answer, err error) {
	nonce := k.nonce()
	stored, err = k.store.Renew(ctx, t.grant, k.request(nonce, now))
	if err == nil {
		return stored, t.acknowledged(stored), nil
	}
	if !errors.Is(err, ErrLost) {
		t.pending = append(t.pending, nonce)
	}
	stored, unread := k.store.Get(ctx, t.node)
	if unread != nil {
		return stored, unwritten, err // as far as is known
	}
	return stored, t.meaning(stored), err
}

// giveBack seals the generator and returns the unused seconds, unless an operator raised the store.
func (k *Keeper) giveBack(ctx context.Context) error {
	k.sweep()
	t := k.term
	if t == nil {
		return nil
	}
	unused, first := t.finish(nil)
	if !first || t.shared.Load() || !t.alive() {
		// Dropped meanwhile, or restored: a copy of this process may still use it. Or others were
		// told its nodes.
		return nil
	}
	return k.store.Release(ctx, t.grant, k.nonce(), unused)
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

// failed reports a failure when it begins, and again when it turns out to be permanent.
func (k *Keeper) failed(ctx context.Context, what string, err error) {
	if ctx.Err() != nil {
		return // closing
	}
	err = fmt.Errorf("lease: %s: %w", what, err)
	cause := permanent(err)
	if k.failure.Swap(&err) == nil || cause != nil && cause != k.denied {
		k.report(err)
	}
	if cause != nil {
		k.denied = cause
		closeOnce(k.refused)
	}
}
