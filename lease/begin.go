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

// The part of a Keeper's loop that deals with the histories of a store. It leaves one, and begins
// another, if the store has moved, or if it shows what it cannot have after what it acknowledged.
// A Keeper compares what it sees within one history only, and reads it twice.

// beginTimeout bounds the begin of a history, which writes every page of the store.
const beginTimeout = 5 * time.Minute

// another reports whether an error says that the store has, or needs, another history. A store
// without a secret that has moved waits for an operator instead.
func another(err error) bool {
	return errors.Is(err, ErrHistory) || errors.Is(err, ErrBeginning) ||
		errors.Is(err, ErrMoved) && !errors.Is(err, ErrMisconfigured)
}

// learn draws the conclusion from the error of a call in a history, if it is about the history, and
// reports whether it is.
func (l *loop) learn(h History, err error) bool {
	switch {
	case !another(err), l.search.begin != nil: // the latter: it is being left already
		return false
	case errors.Is(err, ErrMoved):
		l.report(fmt.Errorf("%w: it was restored, moved or copied, or a standby was promoted. No "+
			"IDs are equal. The store gets a new history by itself; nothing is to be done", err))
		l.leave(h.ID, Moved)
	case errors.Is(err, ErrBeginning):
		l.leave("", Moved) // for any that is complete
	default:
		l.forget()
	}
	return true
}

// contradicted is called with an error of Acquire which shows that the store was set back. What one
// response shows begins no history.
func (l *loop) contradicted(err error, again bool) {
	if !again {
		return
	}
	l.report(fmt.Errorf("%w. IDs generated in its history %s may be equal. %s", err, l.about.ID,
		l.keeper.healing()))
	l.leave(l.about.ID, Contradicted)
}

// healing says what becomes of a store that was set back.
func (k *Keeper) healing() string {
	if k.nodesOnly {
		return "Such a store begins no history by itself: stop all processes that lease from it, " +
			"wait for the longest lease, then: traceflake lease rekey"
	}
	return "The store gets a new history by itself; nothing is to be done"
}

// forget lets the next step describe the store.
func (l *loop) forget() {
	l.about = Description{}
	l.search = search{machine: l.search.machine, notBefore: l.search.notBefore,
		failures: l.search.failures}
}

// leave lets the next step begin a history.
func (l *loop) leave(id, why string) {
	l.forget()
	l.search.begin = &BeginRequest{Leaves: id, Reason: why}
}

// leaveTerm ends the renewals of a term whose history has ended. It is used to its end, or until
// there is another one.
func (l *loop) leaveTerm(t *term) {
	if t.proven {
		l.former = t
	}
	l.term, l.search.notBefore = nil, l.keeper.cfg.clock().elapsed
}

// reread reads the block of a term again that showed that the store was set back.
func (l *loop) reread(ctx context.Context) error {
	t := l.search.doubt
	stored, err := l.get(ctx, t.grant)
	switch {
	case errors.Is(err, ErrContradicted), err == nil && t.meaning(stored, false) == forgotten:
		l.leave(t.grant.Store, Contradicted)
	case err != nil:
		return err
	}
	l.search.doubt = nil
	return nil
}

// describe reads the description of the store.
func (l *loop) describe(ctx context.Context) error {
	bounded, done := l.call(ctx, "describe", callTimeout)
	d, err := l.store.Describe(bounded)
	begin := l.search.begin
	wait := begin != nil && (another(err) ||
		err == nil && begin.Reason == Contradicted && begin.Leaves == d.ID)
	if err == nil && !wait {
		err = l.enter(ctx, d)
	}
	if done(err); wait || l.learn(d.History, err) {
		return nil
	}
	return err
}

// begin begins a history, under the secret of the one that it leaves. Each one waits longer than
// the one before: a store that moves all the time is not kept busy. Somebody else may begin one
// meanwhile.
func (l *loop) begin(ctx context.Context) error {
	k := l.keeper
	if l.mayBegin() > k.cfg.clock().elapsed {
		return l.describe(ctx)
	}
	secrets, err := l.readSecrets(ctx)
	if err != nil {
		return err
	}
	if k.cfg.machine() != l.search.machine {
		return nil // a copy may draw the same ID
	}
	r := *l.search.begin
	r.Now, r.Secrets, r.Known = k.cfg.clock().wall, secrets, k.Histories()
	bounded, done := l.call(ctx, "begin", beginTimeout)
	d, err := l.store.Begin(bounded, r)
	done(err)
	switch {
	case err != nil && !errors.Is(err, ErrHistory):
		return err
	case k.cfg.machine() != l.search.machine: // a copy may have drawn the same ID
		l.leave(d.ID, r.Reason)
		return nil
	case err == nil:
		k.counts.add(series{history: r.Reason})
	}
	return l.enter(ctx, d)
}

// mayBegin returns when this process may begin a history, on the monotonic clock. The first two in
// an hour do not wait, the others wait until the present one has been seen for 1, 2, 4, and at most
// 8 minutes.
func (l *loop) mayBegin() time.Duration {
	now := l.keeper.cfg.clock().elapsed
	l.seen = slices.DeleteFunc(l.seen, func(at time.Duration) bool { return at < now-time.Hour })
	n := len(l.seen)
	if n < 3 {
		return now
	}
	return l.seen[n-1] + time.Minute<<min(n-3, 3)
}

// readSecrets returns the secrets of the process.
func (l *loop) readSecrets(ctx context.Context) (*randflake.Keyring, error) {
	if l.secrets == nil {
		return nil, nil
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	secrets, err := l.secrets(ctx)
	if err != nil {
		return nil, fmt.Errorf("secret: %w", err)
	}
	return secrets, nil
}

// returned is called with a history that the store had already left. If it shows it twice, it was
// set back: the history forgot what was granted in it before it was left.
func (l *loop) returned(h History) {
	again := l.search.returned == h.ID
	l.forget()
	if l.search.returned = h.ID; !again {
		return
	}
	l.report(fmt.Errorf("%w: its history is %s again, which it had left. IDs generated in that "+
		"history may be equal. %s", ErrContradicted, h.ID, l.keeper.healing()))
	l.leave(h.ID, Contradicted)
}

// enter lets the Keeper lease in the history of a description, unless the store had left it. If the
// configured TTL is longer than the store grants, it uses the store's longest.
func (l *loop) enter(ctx context.Context, d Description) error {
	k := l.keeper
	known := k.Histories()
	if slices.IndexFunc(known, func(h History) bool { return h.ID == d.ID }) > 0 {
		l.returned(d.History)
		return nil
	}
	codec, err := l.codecOf(ctx, d)
	if err != nil {
		return err
	}
	l.search.begin, l.search.returned = nil, ""
	k.blocks.Store(int64(d.Blocks()))
	if ttl := time.Duration(k.ttl.Load()); d.LongestTTL > 0 && d.LongestTTL < ttl {
		l.report(fmt.Errorf(
			"lease: the store grants leases of at most %s, this process requests %s: "+
				"without the store, leased IDs last for the shorter time only", d.LongestTTL, ttl))
		k.ttl.Store(int64(d.LongestTTL))
	}
	if len(known) == 0 || known[0].ID != d.ID {
		l.seen = append(l.seen, k.cfg.clock().elapsed)
		if len(known) > 0 {
			l.report(reports.Recovered(fmt.Sprintf("lease: the store has a new history, %s, begun "+
				"at %s (%s). Leases continue in it; nothing is to be done", d.ID, text(d.Begun),
				d.Reason)))
		}
	}
	merged := d.Histories()
	for _, h := range known {
		if !slices.ContainsFunc(merged, func(o History) bool { return o.ID == h.ID }) {
			merged = append(merged, h)
		}
	}
	slices.SortStableFunc(merged[1:], func(a, b History) int { return b.Begun.Compare(a.Begun) })
	k.histories.Store(&merged)
	l.about, l.codec = d, codec
	return nil
}

// codecOf returns the codec of IDs leased in a store's history. A store without a secret has none;
// a generator still needs one, which nobody else has.
func (l *loop) codecOf(ctx context.Context, d Description) (*randflake.Codec, error) {
	switch {
	case d.Keyless && l.keeper.nodesOnly:
		return randflake.NewCodec([]byte(NewNonce())[:16])
	case d.Keyless:
		return nil, &Error{
			fmt.Errorf("%w: it has no secret, so its nodes are for lease.Nodes", ErrKeyless),
			"lease IDs from a store with a secret: traceflake lease create"}
	case l.keeper.nodesOnly:
		return nil, &Error{
			fmt.Errorf("%w: it has a secret, so its nodes are for IDs", ErrKeyless),
			"lease Nodes from a store without one: traceflake lease create --without-secret"}
	}
	secrets, err := l.readSecrets(ctx)
	if err != nil {
		return nil, err
	}
	return d.Codec(secrets)
}
