package traceid

import (
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/traceflake/traceflake/randflake"
)

const (
	defaultMaxAge = 24 * time.Hour
	defaultSkew   = time.Minute
)

// Verifier distinguishes trace IDs of this fleet from others. It is safe for concurrent use. The
// zero Verifier refuses everything.
//
// The answer of Verify is a hint of origin, not authentication. It stops garbage and random IDs: 5
// in 2^30 of those pass for each secret, because the times of the halves may differ by two seconds
// beyond the second to which the low one is truncated. It does not stop a replayed ID, nor an ID
// that combines the low half of a real trace ID, or a real span ID, with a matching clear half. It
// also refuses IDs of the random fallback, of NewTraceIDAt, and of clients, which have no secret:
// of those, [Verifier.Plausible] accepts recent ones.
type Verifier struct {
	keyring      func() *randflake.Keyring
	maxAge, skew time.Duration
	recent       time.Duration    // how old a plausible ID may be; negative: none is plausible
	now          func() time.Time // nil in the zero Verifier
	unknown      func(trace.TraceID)
}

// VerifierOption configures a [Verifier].
type VerifierOption func(*Verifier)

// WithMaxAge sets how old an ID may be; the default is a day.
func WithMaxAge(d time.Duration) VerifierOption {
	return func(v *Verifier) { v.maxAge = max(d, 0) }
}

// WithSkew sets how far in the future an ID may lie, because the clock of the machine that
// generated it runs ahead of this one's; the default is a minute.
func WithSkew(d time.Duration) VerifierOption {
	return func(v *Verifier) { v.skew = max(d, 0) }
}

// WithPlausible sets how old an ID may be that [Verifier.Plausible] accepts; a negative maxAge is
// 0. Without this option it accepts none. Choose minutes, and a skew as large as clients' clocks
// run ahead. Verify does not depend on it.
func WithPlausible(maxAge time.Duration) VerifierOption {
	return func(v *Verifier) { v.recent = max(maxAge, 0) }
}

// WithClock sets the clock; the default, and nil, is time.Now. It must be safe for concurrent use.
func WithClock(now func() time.Time) VerifierOption {
	return func(v *Verifier) {
		if now != nil {
			v.now = now
		}
	}
}

// WithUnknown sets a function that Verify calls for IDs of a plausible time that are under none of
// the secrets: to read new secrets, for later IDs. It must return at once, and be safe for
// concurrent use.
func WithUnknown(f func(trace.TraceID)) VerifierOption {
	return func(v *Verifier) { v.unknown = f }
}

// NewVerifier returns a verifier of IDs generated under any of k's secrets. If k is nil, Verify
// refuses everything.
func NewVerifier(k *randflake.Keyring, opts ...VerifierOption) *Verifier {
	return NewVerifierFunc(func() *randflake.Keyring { return k }, opts...)
}

// NewVerifierFunc returns a verifier like [NewVerifier]'s that calls keyring for each ID: for
// secrets that are read or replaced while the process runs. keyring must be safe for concurrent
// use.
func NewVerifierFunc(keyring func() *randflake.Keyring, opts ...VerifierOption) *Verifier {
	v := &Verifier{keyring: keyring, maxAge: defaultMaxAge, skew: defaultSkew, recent: -1,
		now: time.Now}
	for _, opt := range opts {
		if opt != nil {
			opt(v)
		}
	}
	return v
}

// Verify reports whether id looks genuine: its time is plausible and its halves agree under one of
// the secrets.
func (v *Verifier) Verify(id trace.TraceID) bool {
	if v == nil || v.now == nil || !v.within(id, v.maxAge) {
		return false
	}
	_, secret := decode(v.keyring(), id)
	if secret < 0 && v.unknown != nil {
		v.unknown(id)
	}
	return secret >= 0
}

// Plausible reports whether id is recent: its time lies in [now-maxAge, now+skew], with the maxAge
// of [WithPlausible], whatever its low half. So it accepts IDs that clients generate themselves in
// this layout, and those of the random fallback and of zero configuration.
//
// That is no hint of origin: anyone who knows the layout can forge any number of such IDs. It still
// refuses IDs that are old or not in this layout: 64-bit IDs, UUIDs and ULIDs, whose time reads as
// years ago, and all random IDs except a fraction of (maxAge+skew) / 69.7 years.
func (v *Verifier) Plausible(id trace.TraceID) bool {
	return v != nil && v.now != nil && v.recent >= 0 && v.within(id, v.recent)
}

// within reports whether id's time lies in [now-maxAge, now+skew], as that of no 64-bit ID does.
func (v *Verifier) within(id trace.TraceID, maxAge time.Duration) bool {
	t, now := Time(id), v.now()
	return !t.Before(now.Add(-maxAge)) && !t.After(now.Add(v.skew))
}
