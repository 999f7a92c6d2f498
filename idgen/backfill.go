package idgen

import (
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/traceflake/traceflake/traceid"
)

// NewTraceIDAt returns a trace ID for a record that predates tracing: its clear half encodes t, to
// the millisecond, and its low half is a current ID. So it sorts among the IDs of its time, is as
// unique as any other, and decodes to both times; a [traceid.Verifier] refuses it. The IDs of a
// millisecond follow the order of the calls, except that the sequence, which all milliseconds
// share, starts again after every 2^23 calls.
//
// Errors: [traceid.ErrBeforeEpoch], [traceid.ErrAfterEnd].
func (g *Generator) NewTraceIDAt(t time.Time) (trace.TraceID, error) {
	ms, err := traceid.Millis(t)
	if err != nil {
		return trace.TraceID{}, err
	}
	low := g.newID(g.locals.take(g.locals.pin()))
	sequence := g.backfilled.Add(1) & traceid.MaxSequence
	return join(max(ms<<traceid.SequenceBits|sequence, 1), low), nil
}
