package idgen

import (
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/traceflake/traceflake/randflake"
)

// Info is what a trace ID says. For a foreign ID the fields are what its bits
// happen to mean.
type Info struct {
	TraceID  trace.TraceID
	Time     time.Time       // of the clear half, a whole millisecond
	Sequence uint32          // of the clear half, within that millisecond
	Low      randflake.ID    // the low half as it stands
	Parts    randflake.Parts // the low half decoded; zero without a codec
	// Agree: the two halves tell the same time, as far as a generator's halves
	// may lie apart. Not so for an ID that another secret made, for a foreign
	// or a random one, and for one of NewTraceIDAt, whose Parts.Time is when
	// it was given.
	Agree bool
}

// Inspect decodes both halves of a trace ID. c holds the secret under which it
// was made; nil decodes the clear half only.
func Inspect(c *randflake.Codec, id trace.TraceID) Info {
	info := Info{TraceID: id, Time: Time(id), Sequence: Sequence(id), Low: low(id)}
	if c != nil {
		info.Parts = c.Decode(info.Low)
		info.Agree = high(id) != 0 && agree(info.Time, info.Parts.Time, hold)
	}
	return info
}

// agree reports whether the halves of an ID may tell these times. Both run
// ahead of one clock by at most tolerance; the low one is cut to its second.
func agree(clear, second time.Time, tolerance time.Duration) bool {
	d := clear.Sub(second)
	return d >= -tolerance && d < tolerance+time.Second
}

const (
	defaultMaxAge = 24 * time.Hour
	defaultSkew   = time.Minute
)

// Verifier tells trace IDs that this fleet made from others. It is safe for
// concurrent use.
//
// What it says is a hint of origin, not authentication. It stops garbage and
// IDs made up at random: one of 2^30/5 of those passes a codec. It does not
// stop an ID that was seen and is sent again, nor one put together from the
// low half of a real trace ID, or a real span ID, and a clear half that fits
// it. It refuses IDs made by the random fallback, by NewTraceIDAt, and on
// clients, which have no secret, too; [WithPlausible] lets those pass.
type Verifier struct {
	codecs                  []*randflake.Codec
	tolerance, maxAge, skew time.Duration
	plausible               time.Duration // the second rule's age; negative without that rule
	clock                   randflake.Clock
}

// VerifierOption configures a [Verifier].
type VerifierOption interface{ applyVerifier(*Verifier) }

type verifierOptionFunc func(*Verifier)

func (f verifierOptionFunc) applyVerifier(v *Verifier) { f(v) }

// WithTolerance sets by how much the two halves may disagree beyond the second
// that the low one is cut to. The default, 2 s, is what generators of this
// package hold and borrow; a source with another bound needs that one. Each
// second adds two to the number of forgeries of 2^30 that pass.
func WithTolerance(d time.Duration) VerifierOption {
	return verifierOptionFunc(func(v *Verifier) { v.tolerance = max(d, 0) })
}

// WithMaxAge sets how old an ID may be; the default is a day.
func WithMaxAge(d time.Duration) VerifierOption {
	return verifierOptionFunc(func(v *Verifier) { v.maxAge = max(d, 0) })
}

// WithSkew sets how far in the future an ID may lie, because the clock of the
// machine that made it runs ahead of this one's; the default is a minute.
func WithSkew(d time.Duration) VerifierOption {
	return verifierOptionFunc(func(v *Verifier) { v.skew = max(d, 0) })
}

// WithPlausible also accepts every ID whose time lies in [now-maxAge,
// now+skew], whatever its low half: those that clients make themselves in this
// layout, those of the random fallback and of zero configuration. Without this
// option they are refused. A negative maxAge is 0.
//
// It gives up the hint of origin: whoever knows the layout can make any number
// of IDs that pass. What is still refused is what was not made for tracing with
// this layout, or not now: 64-bit IDs, UUIDs and ULIDs, whose time reads as
// years ago, old IDs, and random bits but for a share of (maxAge+skew) / 69.7
// years. Choose minutes, and a skew as far as clocks of clients run ahead.
func WithPlausible(maxAge time.Duration) VerifierOption {
	return verifierOptionFunc(func(v *Verifier) { v.plausible = max(maxAge, 0) })
}

// WithVerifierClock sets the clock, for tests.
func WithVerifierClock(c randflake.Clock) VerifierOption {
	return verifierOptionFunc(func(v *Verifier) {
		if c != nil {
			v.clock = c
		}
	})
}

// NewVerifier returns a verifier of IDs made under any of the codecs' secrets.
// Without a codec it refuses everything, but for what [WithPlausible] accepts.
func NewVerifier(codecs []*randflake.Codec, opts ...VerifierOption) *Verifier {
	v := &Verifier{tolerance: hold, maxAge: defaultMaxAge, skew: defaultSkew, plausible: -1, clock: randflake.SystemClock}
	for _, c := range codecs {
		if c != nil {
			v.codecs = append(v.codecs, c)
		}
	}
	for _, opt := range opts {
		opt.applyVerifier(v)
	}
	return v
}

// Verify reports whether id looks like one of ours: its time is plausible and
// its halves agree under one of the secrets, or [WithPlausible] accepts it.
func (v *Verifier) Verify(id trace.TraceID) bool {
	now := v.clock.Now()
	if v.plausible >= 0 && Plausible(id, now, v.plausible, v.skew) {
		return true
	}
	return Plausible(id, now, v.maxAge, v.skew) && v.agree(id)
}

func (v *Verifier) agree(id trace.TraceID) bool {
	t := Time(id)
	for _, c := range v.codecs {
		if agree(t, c.Decode(low(id)).Time, v.tolerance) {
			return true
		}
	}
	return false
}
