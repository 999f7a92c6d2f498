package traceid

import (
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/traceflake/traceflake/randflake"
)

// Info is the content of a trace ID. For a foreign ID the fields have no meaning.
type Info struct {
	TraceID  trace.TraceID
	Time     time.Time       // of the clear half, a whole millisecond
	Sequence uint32          // of the clear half, within that millisecond
	Low      randflake.ID    // the low half, undecoded
	Parts    randflake.Parts // the low half decoded; zero without a secret
	// Agree is whether the times of the two halves differ by no more than they may in IDs of a
	// generator. It is false for an ID generated under another secret, for a foreign or a random
	// one, and for one from NewTraceIDAt, whose Parts.Time is when the record got its ID.
	Agree bool
	// Secret is the number, from 0, of the secret under which the halves
	// agree, or -1.
	Secret int
}

// Inspect decodes both halves of a trace ID under each secret of k and returns
// the result of the first under which they agree. If there is none, Parts are
// decoded with the first secret. If k is nil, only the clear half is
// decoded.
func Inspect(k *randflake.Keyring, id trace.TraceID) Info {
	info := Info{TraceID: id, Time: Time(id), Sequence: Sequence(id), Low: Low(id), Secret: -1}
	for i, c := range k.Codecs() {
		parts := c.Decode(info.Low)
		if high(id) != 0 && agree(info.Time, parts.Time, DefaultTolerance) {
			info.Parts, info.Agree, info.Secret = parts, true, i
			return info
		}
		if i == 0 {
			info.Parts = parts
		}
	}
	return info
}

// agree reports whether the halves of one ID may have these times. Both run ahead of one clock by
// at most tolerance; the low one is truncated to its second.
func agree(clear, second time.Time, tolerance time.Duration) bool {
	d := clear.Sub(second)
	return d >= -tolerance && d < tolerance+time.Second
}
