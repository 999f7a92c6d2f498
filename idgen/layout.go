package idgen

import (
	"encoding/binary"

	"go.opentelemetry.io/otel/trace"

	"github.com/traceflake/traceflake/randflake"
)

// join returns the trace ID of two halves, in the layout that package traceid defines.
func join(high uint64, low randflake.ID) (id trace.TraceID) {
	binary.BigEndian.PutUint64(id[:8], high)
	binary.BigEndian.PutUint64(id[8:], uint64(low))
	return id
}

func spanID(id randflake.ID) (s trace.SpanID) {
	binary.BigEndian.PutUint64(s[:], uint64(id))
	return s
}
