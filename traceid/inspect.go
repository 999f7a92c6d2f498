package traceid

import (
	"log/slog"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/traceflake/traceflake/internal/layout"
	"github.com/traceflake/traceflake/randflake"
)

// Info is the content of a trace ID. For a foreign ID the fields have no meaning.
type Info struct {
	// Time is that of the clear half, a whole millisecond; the zero Time for a 64-bit ID.
	Time time.Time `json:"time,omitzero"`
	// Sequence is that of the clear half, within that millisecond.
	Sequence uint32 `json:"sequence"`
	// Parts is the low half decoded; zero without a secret.
	Parts randflake.Parts `json:"parts,omitzero"`
	// Agree reports whether the times of the two halves differ by no more than a generator allows.
	// It is false for IDs generated under another secret, foreign and random IDs, and those of
	// NewTraceIDAt, whose Parts.Time is when the record got its ID.
	Agree bool `json:"agree"`
	// Secret is the number, from 0, of the secret under which the halves agree, or -1.
	Secret int `json:"secret"`
}

// LogValue returns the fields as a group of package slog.
func (i Info) LogValue() slog.Value {
	return slog.GroupValue(slog.Time("time", i.Time), slog.Uint64("sequence", uint64(i.Sequence)),
		slog.Bool("agree", i.Agree), slog.Int("secret", i.Secret),
		slog.Group("parts", "time", i.Parts.Time, "node", i.Parts.Node,
			"sequence", i.Parts.Sequence))
}

// Inspect decodes both halves of a trace ID under each secret of k that is valid at its time, and
// returns the result of the first under which they agree. If they agree under none, Parts are
// decoded with the first secret.
// If k is nil, only the clear half is decoded.
func Inspect(k *randflake.Keyring, id trace.TraceID) Info {
	parts, secret := decode(k, id)
	return Info{
		Time: Time(id), Sequence: uint32(high(id) & layout.MaxSequence),
		Parts: parts, Agree: secret >= 0, Secret: secret,
	}
}

// tolerance is how much the times of an ID's two halves may differ, beyond the second to which the
// low half is truncated: a generator runs ahead of its clock by at most this time, and bridges
// smaller steps back of the clock.
const tolerance = layout.Borrow

// decode decodes the low half with the first of the secrets valid at the clear half's time under
// which the halves agree, and returns its number. If they agree under none, it uses the first one
// that is valid, and returns -1.
func decode(k *randflake.Keyring, id trace.TraceID) (first randflake.Parts, secret int) {
	for i, c := range k.At(Time(id)) {
		parts := c.Decode(Low(id))
		if d := Time(id).Sub(parts.Time); d >= -tolerance && d < tolerance+time.Second {
			return parts, i
		}
		if first.Time.IsZero() {
			first = parts
		}
	}
	return first, -1
}
