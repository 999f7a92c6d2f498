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
// Its answer is a hint of origin, not authentication. It stops garbage and random IDs: 5 in 2^30 of
// those pass for each secret, because the times of the halves may differ by two seconds beyond the
// second to which the low one is truncated. It does not stop a replayed ID, nor an ID that combines
// the low half of a real trace ID, or a real span ID, with a matching clear half. It also refuses
// IDs of the random fallback, of NewTraceIDAt, and of clients, which have no secret;
// [WithPlausible] accepts recent ones.
type Verifier struct {
	keyring      func() *randflake.Keyring
	maxAge, skew time.Duration
	plausible    time.Duration    // the second rule's age; negative without that rule
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

// WithPlausible also accepts every ID whose time lies in [now-maxAge, now+skew], whatever its low
// half: those that clients generate themselves in this layout, those of the random fallback and of
// zero configuration. Without this option they are refused. A negative maxAge is 0.
//
// With this option passing is no hint of origin: anyone who knows the layout can forge any number
// of IDs that pass. The verifier still refuses IDs that are old or not in this layout: 64-bit IDs,
// UUIDs and ULIDs, whose time reads as years ago, and all random IDs except a fraction of
// (maxAge+skew) / 69.7 years. Choose minutes, and a skew as large as clients' clocks run ahead.
func WithPlausible(maxAge time.Duration) VerifierOption {
	return func(v *Verifier) { v.plausible = max(maxAge, 0) }
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

// NewVerifier returns a verifier of IDs generated under any of k's secrets. If k is nil, it
// refuses everything except what [WithPlausible] accepts.
func NewVerifier(k *randflake.Keyring, opts ...VerifierOption) *Verifier {
	return NewVerifierFunc(func() *randflake.Keyring { return k }, opts...)
}

// NewVerifierFunc returns a verifier like [NewVerifier]'s that calls keyring for each ID: for
// secrets that are read or replaced while the process runs. keyring must be safe for concurrent
// use.
func NewVerifierFunc(keyring func() *randflake.Keyring, opts ...VerifierOption) *Verifier {
	v := &Verifier{keyring: keyring, maxAge: defaultMaxAge, skew: defaultSkew, plausible: -1,
		now: time.Now}
	for _, opt := range opts {
		if opt != nil {
			opt(v)
		}
	}
	return v
}

// Verify reports whether id looks genuine: its time is plausible and its halves agree under one of
// the secrets, or [WithPlausible] accepts it.
func (v *Verifier) Verify(id trace.TraceID) bool {
	if v == nil || v.now == nil {
		return false
	}
	now := v.now()
	if v.plausible >= 0 && Plausible(id, now, v.plausible, v.skew) {
		return true
	}
	if !Plausible(id, now, v.maxAge, v.skew) {
		return false
	}
	_, secret := decode(v.keyring(), id)
	if secret < 0 && v.unknown != nil {
		v.unknown(id)
	}
	return secret >= 0
}
