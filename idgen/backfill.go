package idgen

import (
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/traceflake/traceflake/traceid"
)

// NewTraceIDAt returns a trace ID for a record that predates tracing: its clear half encodes t, to
// the millisecond, and its low half is a current ID. So it sorts among the IDs of its time, is as
// unique as any other, and decodes to both times; a [traceid.Verifier] refuses it. Within a
// millisecond the IDs follow the order of the calls, up to 2^23 of them.
//
// Errors: [traceid.ErrBeforeEpoch], [traceid.ErrAfterEnd].
func (g *Generator) NewTraceIDAt(t time.Time) (trace.TraceID, error) {
	ms, err := traceid.Millis(t)
	if err != nil {
		return trace.TraceID{}, err
	}
	s := g.shards.take(g.shards.pin())
	low, _, err := g.more(s, 1, 1, g.clock.counter.read())
	g.shards.put(s)
	if err != nil {
		g.refused(err)
		low = randomID()
	}
	sequence := g.old.Add(1) & maxSequence
	return join(max(ms<<sequenceBits|sequence, 1), low), nil
}
