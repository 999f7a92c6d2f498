package lease

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/traceflake/traceflake/randflake"
)

const (
	minBackoff = 50 * time.Millisecond
	maxBackoff = 10 * time.Second
	// callTimeout bounds one call of the store.
	callTimeout = 5 * time.Second
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
	}
	for _, s := range slices.Clone(k.slots) {
		if ctx.Err() == nil && !s.lost && !s.gone.Load() && k.cfg.clock.Elapsed() >= s.renewAt {
			if k.spare(s) {
				k.giveBack(ctx, s)
			} else {
				k.renew(ctx, s)
			}
		}
	}
	k.sweep()
	return k.untilNext()
}

// sweep forgets the slots that make no IDs any more.
func (k *Keeper) sweep() {
	now := k.cfg.clock.Now()
	kept := slices.DeleteFunc(slices.Clone(k.slots), func(s *slot) bool {
		if !s.gone.Load() {
			s.look()
		}
		if s.lost && !now.Before(s.grant.End) {
			s.end()
		}
		return s.gone.Load()
	})
	if len(kept) != len(k.slots) {
		k.slots = kept
		k.publish()
	}
}

// short tells whether another block is wanted: none can be renewed, or all of
// them are borrowing.
func (k *Keeper) short() bool {
	renewable, idle := 0, 0
	now := k.cfg.clock.Now().Unix()
	for _, s := range k.slots {
		if !s.lost {
			renewable++
		}
		if s.busy.Load() < now-1 {
			idle++
		}
	}
	return renewable == 0 || idle == 0 && len(k.slots) < k.cfg.maxBlocks
}

// spare tells whether a slot due for renewal is one too many: another is left
// and none has borrowed since half a TTL.
func (k *Keeper) spare(s *slot) bool {
	since := k.cfg.clock.Now().Add(-k.cfg.ttl / 2).Unix()
	others := 0
	for _, other := range k.slots {
		if other.busy.Load() >= since {
			return false
		}
		if other != s && !other.lost && !other.gone.Load() {
			others++
		}
	}
	return others > 0
}

// untilNext is how long nothing is due.
func (k *Keeper) untilNext() time.Duration {
	next := time.Duration(1<<63 - 1)
	if k.short() {
		next = k.askAt
	}
	now := read(k.cfg.clock)
	for _, s := range k.slots {
		if s.lost {
			next = min(next, now.elapsed+s.grant.End.Sub(now.wall))
		} else {
			next = min(next, s.renewAt)
		}
	}
	return max(next-now.elapsed, 0)
}

// acquire asks for one more block. The holder stays the same until the answer
// is known, so that a grant whose answer was lost is found again.
func (k *Keeper) acquire(ctx context.Context) {
	if k.holder == "" {
		k.holder = NewHolder()
	}
	before := read(k.cfg.clock)
	call, cancel := context.WithTimeout(ctx, callTimeout)
	g, err := k.store.Acquire(call, Request{Holder: k.holder, Now: before.wall, TTL: k.cfg.ttl, Owner: k.cfg.owner})
	cancel()
	k.meters.request(ctx, "acquire", err)
	if err != nil {
		k.askAt = k.cfg.clock.Elapsed() + k.backoff(&k.failures)
		k.failed(ctx, "acquire", err)
		return
	}
	k.holder = ""
	s, err := newSlot(k.codec, g, k.cfg.clock, before, k.drop)
	if err != nil || !before.wall.Before(g.End) {
		// An earlier answer that was lost for so long that the grant is over,
		// or a store that grants what is none.
		k.askAt = k.cfg.clock.Elapsed() + k.backoff(&k.failures)
		if err != nil {
			k.failed(ctx, "acquire", err)
		}
		return
	}
	k.failures, k.askAt = 0, k.cfg.clock.Elapsed()
	k.recovered()
	k.schedule(s)
	k.slots = append(k.slots, s)
	k.publish()
	select {
	case <-k.ready:
	default:
		close(k.ready)
	}
}

// renew moves a slot's end. Whatever goes wrong, the block as the store has it
// then decides: an answer may have been lost, or come late.
func (k *Keeper) renew(ctx context.Context, s *slot) {
	at, ok := s.look()
	if !ok {
		return // a clock that was stepped asks for no ends
	}
	call, cancel := context.WithTimeout(ctx, callTimeout)
	next := NewHolder()
	g, err := k.store.Renew(call, s.grant, next, at.wall.Add(k.cfg.ttl))
	cancel()
	k.meters.request(ctx, "renew", err)
	if err != nil {
		call, cancel = context.WithTimeout(ctx, callTimeout)
		stored, getErr := k.store.Get(call, s.grant)
		cancel()
		k.meters.request(ctx, "get", getErr)
		if getErr != nil {
			k.retry(ctx, s, err)
			return
		}
		if stored.Holder != next || !stored.Start.Equal(s.grant.Start) {
			k.unrenewed(ctx, s, stored, err)
			return
		}
		g = stored // it was written after all
	}
	if err := k.adopt(s, g); err != nil {
		k.retry(ctx, s, err)
		return
	}
	s.failures = 0
	k.recovered()
	k.schedule(s)
}

// adopt takes a slot's grant from the store: the end that is stored, whatever
// was asked for.
func (k *Keeper) adopt(s *slot, g Grant) error {
	if g.End.Before(s.grant.End) {
		k.drop(s, contradicted)
		return fmt.Errorf("lease: node %d: the store moved the end from %s back to %s; is it an old copy?",
			g.Node, text(s.grant.End), text(g.End))
	}
	if err := s.gen.Extend(g.End); err != nil && !errors.Is(err, randflake.ErrSealed) {
		return err
	}
	s.grant = g
	s.until.Store(g.End.Unix())
	return nil
}

// unrenewed looks at what the store has in place of a renewal.
func (k *Keeper) unrenewed(ctx context.Context, s *slot, stored Grant, err error) {
	switch {
	case stored.End.Before(s.grant.End), stored.Version < s.grant.Version,
		stored.Holder != "" && stored.Holder != s.grant.Holder && stored.Start.Before(s.grant.End):
		// The store forgot an acknowledged grant. Others may have these
		// seconds; make no more IDs of them.
		k.drop(s, contradicted)
		k.failed(ctx, "renew", fmt.Errorf("node %d: the store denies a grant until %s; is it an old copy? %w",
			s.grant.Node, text(s.grant.End), err))
	case stored.Holder != s.grant.Holder || stored.Version != s.grant.Version:
		// The seconds granted so far stay ours.
		s.lost = true
		k.failed(ctx, "renew", err)
	default:
		k.retry(ctx, s, err)
	}
}

func (k *Keeper) retry(ctx context.Context, s *slot, err error) {
	s.renewAt = k.cfg.clock.Elapsed() + k.backoff(&s.failures)
	k.failed(ctx, "renew", err)
}

// giveBack seals a slot and returns its unused seconds.
func (k *Keeper) giveBack(ctx context.Context, s *slot) {
	unused := s.end()
	k.sweep()
	if err := k.release(ctx, s.grant, unused); err != nil {
		k.failed(ctx, "release", err)
	}
}

// giveBackAll ends every slot; the goroutine is over.
func (k *Keeper) giveBackAll(ctx context.Context) error {
	var errs []error
	for _, s := range k.slots {
		if !s.gone.Load() && !s.lost {
			errs = append(errs, k.release(ctx, s.grant, s.end()))
		}
	}
	k.slots = nil
	return errors.Join(errs...)
}

// release gives back the seconds from unused on. The generator is sealed, so a
// renewal that was written without our knowledge is given back, too.
func (k *Keeper) release(ctx context.Context, g Grant, unused time.Time) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	err := k.store.Release(ctx, g, NewHolder(), unused)
	k.meters.request(ctx, "release", err)
	return err
}

// schedule sets the next renewal to half of what is left of the grant, give or
// take a tenth.
func (k *Keeper) schedule(s *slot) {
	now := read(k.cfg.clock)
	half := float64(s.grant.End.Sub(now.wall)) / 2
	// A store that grants next to nothing is not asked all the time.
	s.renewAt = now.elapsed + max(time.Duration(half*(0.9+0.2*k.jitter())), k.cfg.ttl/20)
}

// backoff doubles with every failure in a row, up to a bound; jitter keeps the
// clients of a store that comes back apart.
func (k *Keeper) backoff(failures *int) time.Duration {
	d := min(minBackoff<<min(*failures, 10), maxBackoff, k.cfg.ttl/8)
	*failures++
	return time.Duration(float64(d) * (0.5 + k.jitter()))
}

// failed tells of a failure when it begins.
func (k *Keeper) failed(ctx context.Context, what string, err error) {
	if ctx.Err() != nil {
		return // closing
	}
	err = fmt.Errorf("lease: %s: %w", what, err)
	if k.failure.Swap(&err) == nil {
		k.cfg.report(err)
	}
}

func (k *Keeper) recovered() { k.failure.Store(nil) }

func text(t time.Time) string { return t.UTC().Format(time.RFC3339) }
