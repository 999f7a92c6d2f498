package lease

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
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

// loop is the Keeper's goroutine with its state. Only that goroutine uses it, and Close after it
// has ended.
type loop struct {
	*Keeper
	store  bounded
	secret Secret

	id          string               // of the store with which the secret was compared last
	known       bool                 // the store still has that ID, as far as the Keeper knows
	fingerprint string               // of the secret
	term        *term                // the grant held; nil if none
	used        map[uint32]time.Time // by node, the end of what earlier terms used
	noLease     error                // why none is left
	bid         string               // the nonce of an Acquire that was not granted yet
	life        uint64               // the machine's, as far as the Keeper knows
	askAt       time.Duration        // not before this on the monotonic clock
	failures    int                  // Acquires in a row
	denied      error                // the sentinel of the last permanent failure

	// What tests replace.
	report    func(error) // queues a report
	jitter    func() float64
	nonce     func() string
	reseeding time.Duration
}

func newLoop(k *Keeper, s Store, secret Secret) *loop {
	return &loop{
		Keeper:    k,
		store:     bounded{s, k.counts},
		secret:    secret,
		used:      make(map[uint32]time.Time),
		noLease:   ErrNoLease,
		life:      k.cfg.machine(),
		askAt:     k.cfg.clock.Elapsed(), // Elapsed may count from any moment
		report:    k.reports.Add,
		jitter:    rand.Float64,
		nonce:     NewNonce,
		reseeding: reseeding,
	}
}

// run is the Keeper's goroutine.
func (l *loop) run(ctx context.Context) {
	defer close(l.stopped)
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		case <-l.kick:
		}
		timer.Reset(l.step(ctx))
	}
}

// step does what is due and returns how long to wait for the next time.
func (l *loop) step(ctx context.Context) time.Duration {
	l.sweep()
	if l.term == nil && l.cfg.clock.Elapsed() >= l.askAt {
		l.acquire(ctx)
		l.sweep() // time has passed
	}
	if t := l.term; t != nil && t.over.Load() == nil && ctx.Err() == nil &&
		l.cfg.clock.Elapsed() >= t.renewAt {
		// With a stepped clock nothing is renewed.
		if now, ok := t.look(); ok && now.wall.Before(t.grant.End) {
			l.renew(ctx, t, now.wall)
		}
		l.sweep()
	}
	return l.untilNext()
}

// sweep removes a term that has ended, also because its lease is over.
func (l *loop) sweep() {
	if l.term != nil && l.ended(l.term) {
		l.term = nil
		l.publish()
	}
}

// publish lets Next and Fill use the term if it is proven, unless the Keeper is closed.
func (l *loop) publish() {
	h := &state{err: l.noLease}
	if t := l.term; t != nil && t.proven && t.over.Load() == nil {
		h = &state{term: t, err: ErrNoLease}
	}
	if now := l.state.Load(); errors.Is(now.err, ErrClosed) || !l.state.CompareAndSwap(now, h) {
		h.seal() // only Close replaces what is held as well
	}
}

// ended reports whether a term has ended, ends it at its lease's end, and reports why it was
// dropped.
func (l *loop) ended(t *term) bool {
	if t.over.Load() == nil {
		if at, ok := t.look(); ok && !at.wall.Before(t.grant.End) {
			t.finish(nil)
		}
	}
	over := t.over.Load()
	if over == nil {
		return false
	}
	l.noLease = randflake.ErrLeaseExpired
	if over.dropped != nil {
		l.noLease = ErrNoLease
		l.report(over.dropped)
	}
	l.used[t.node] = t.gen.Seal()
	return true
}

// untilNext returns the time until something is due.
func (l *loop) untilNext() time.Duration {
	now := read(l.cfg.clock)
	next := now.elapsed + lookEvery
	if t := l.term; t == nil {
		next = min(next, l.askAt)
	} else {
		next = min(next, t.renewAt, now.elapsed+t.grant.End.Sub(now.wall))
	}
	return max(next-now.elapsed, 0)
}

func (l *loop) request(nonce string, now time.Time) Request {
	return Request{Store: l.id, Secret: l.fingerprint, Nonce: nonce, Now: now,
		TTL:   time.Duration(l.ttl.Load()),
		Owner: l.cfg.owner}
}

// acquire requests a block. An Acquire that was not granted keeps its nonce, so that a grant is
// found again if the response was lost. A grant acquired with a repeated nonce may have been found
// by a copy of this process as well, so its term is proven only by a renewal that the store
// acknowledges.
//
// After a restore it waits, and then draws a new nonce: copies may draw the same ones until their
// kernels learn of it. The life is read before the nonce is drawn, so that a grant requested in
// an unnoticed restore generates no IDs.
func (l *loop) acquire(ctx context.Context) {
	if life := l.cfg.machine(); life != l.life {
		l.life, l.bid = life, ""
		l.askAt = l.cfg.clock.Elapsed() + l.reseeding
		return
	}
	if !l.known {
		if err := l.open(ctx); err != nil {
			l.askAt = l.cfg.clock.Elapsed() + l.backoff(&l.failures, maxBackoff)
			l.failed(ctx, "open the store", err)
			return
		}
	}
	repeated := l.bid != ""
	if !repeated {
		l.bid = l.nonce()
	}
	before := read(l.cfg.clock)
	g, err := l.store.Acquire(ctx, l.request(l.bid, before.wall))
	longest := maxBackoff
	if errors.Is(err, ErrNoFreeNode) {
		longest = maxFull
	}
	l.askAt = l.cfg.clock.Elapsed() + l.backoff(&l.failures, longest)
	if errors.Is(err, ErrReplaced) || errors.Is(err, ErrWrongSecret) {
		l.known = false
	}
	if err != nil {
		l.failed(ctx, "acquire", err)
		return
	}
	l.bid = ""
	if !before.wall.Before(g.End) {
		return // over already: the nonce may have been granted long ago
	}
	if g.Start.Before(l.used[g.Node]) {
		return // a copy of this process gave back seconds that this one has used
	}
	t, err := l.newTerm(g, before, l.life)
	if err != nil {
		l.failed(ctx, "acquire", err)
		return
	}
	l.term = t
	if repeated {
		t.renewAt = l.cfg.clock.Elapsed()
		return
	}
	l.prove(t)
}

// open reads the secret and compares it with the store's description. If the configured TTL is
// longer than the store grants, it uses the store's longest.
func (l *loop) open(ctx context.Context) error {
	limited, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	codec, err := l.secret(limited)
	if err == nil {
		_, err = codec.Encode(randflake.Parts{Time: time.Unix(randflake.Epoch, 0)})
	}
	if err != nil {
		return fmt.Errorf("secret: %w", err)
	}
	d, err := l.store.Describe(ctx, codec)
	if err != nil {
		return err
	}
	if ttl := time.Duration(l.ttl.Load()); d.LongestTTL > 0 && d.LongestTTL < ttl {
		l.report(fmt.Errorf(
			"lease: the store grants leases of at most %s, this process requests %s: "+
				"without the store, leased IDs last for the shorter time only", d.LongestTTL, ttl))
		l.ttl.Store(int64(d.LongestTTL))
	}
	if d.ID != l.id { // nothing of another history matters, which has another secret
		l.id, l.bid = d.ID, ""
		clear(l.used)
	}
	l.known, l.fingerprint = true, d.Fingerprint(codec)
	l.codec.Store(codec)
	return nil
}

// prove lets a term generate IDs: the store has just acknowledged that no other process holds it.
// The next renewal is at half of the time left, plus or minus a tenth.
func (l *loop) prove(t *term) {
	behind := t.grant.Behind
	if was := l.behind.Swap(int64(behind)); was == 0 && behind > 0 {
		l.report(Advise(&Error{fmt.Errorf("lease: the clock is %s behind the store's: the IDs of "+
			"this process are too old, and its lease is over for others", behind),
			"set this machine's clock"}))
	}
	now := read(l.cfg.clock)
	half := float64(t.grant.End.Sub(now.wall)) / 2
	t.failures, t.renewAt = 0, now.elapsed+time.Duration(half*(0.9+0.2*l.jitter()))
	if !t.proven {
		t.proven, l.failures, l.askAt = true, 0, now.elapsed
	}
	l.publish()
	closeOnce(l.ready)
	if l.failure.Swap(nil) != nil { // not before the term can be used: Ready gives the reason
		l.denied = nil
		l.report(errRecovered)
	}
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
func (l *loop) renew(ctx context.Context, t *term, now time.Time) {
	stored, said, err := l.propose(ctx, t, now)
	switch said {
	case written:
		t.extend(stored)
		l.prove(t)
	case late: // renew again soon: a copy may have written this nonce as well
		t.extend(stored)
		t.renewAt = l.cfg.clock.Elapsed() + l.backoff(&t.failures, time.Second)
	case unwritten:
		t.renewAt = l.cfg.clock.Elapsed() + l.backoff(&t.failures, maxBackoff)
		l.failed(ctx, "renew", err)
	default:
		why, err := said.explain(t.grant)
		l.drop(t, why, err)
	}
}

// propose asks the store to move a term's end, under a fresh nonce. It returns what the store has,
// and what that means. Without an acknowledgement the stored block decides: the response may have
// been lost, or an earlier renewal may have been late.
func (l *loop) propose(ctx context.Context, t *term,
	now time.Time) (stored Grant, said answer, err error) {
	nonce := l.nonce()
	stored, err = l.store.Renew(ctx, t.grant, l.request(nonce, now))
	if err == nil {
		return stored, t.acknowledged(stored), nil
	}
	// nothing of this history, or with this secret, is written any more
	if errors.Is(err, ErrReplaced) || errors.Is(err, ErrWrongSecret) {
		return stored, unwritten, err
	}
	if !errors.Is(err, ErrLost) {
		t.pending = append(t.pending, nonce)
	}
	stored, unread := l.store.Get(ctx, t.grant)
	if unread != nil {
		return stored, unwritten, err // as far as is known
	}
	return stored, t.meaning(stored), err
}

// giveBack seals the generator and returns the unused seconds.
func (l *loop) giveBack(ctx context.Context) error {
	l.sweep()
	t := l.term
	if t == nil {
		return nil
	}
	unused, first := t.finish(nil)
	if !first || t.shared.Load() || !t.alive() {
		// Dropped meanwhile, or restored: a copy of this process may still use it. Or others were
		// told its nodes.
		return nil
	}
	return l.store.Release(ctx, t.grant, l.nonce(), unused)
}

// backoff doubles with every failure in a row, up to a bound; jitter spreads the clients of a
// store that comes back.
func (l *loop) backoff(failures *int, longest time.Duration) time.Duration {
	d := min(minBackoff<<min(*failures, 11), longest, time.Duration(l.ttl.Load()/8))
	*failures++
	return time.Duration(float64(d) * (0.5 + l.jitter()))
}

// errRecovered is reported after a failure.
var errRecovered error = reports.Recovered("lease: recovered: the store grants and renews leases")

// failed reports a failure when it begins, and again when it turns out to be permanent.
func (l *loop) failed(ctx context.Context, what string, err error) {
	if ctx.Err() != nil {
		return // closing
	}
	err = Advise(fmt.Errorf("lease: %s: %w", what, err))
	cause := permanent(err)
	if l.failure.Swap(&err) == nil || cause != nil && !errors.Is(cause, l.denied) {
		l.report(err)
	}
	if cause != nil {
		l.denied = cause
		closeOnce(l.refused)
	}
}
