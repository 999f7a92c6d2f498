package traceid

import (
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/traceflake/traceflake/internal/layout"
	"github.com/traceflake/traceflake/randflake"
)

// Min returns the lowest trace ID of t's millisecond, the lower bound of a range query. A time
// before 2020 counts as the first millisecond, one past 2089 as the last. The bound itself may not
// be a valid ID.
func Min(t time.Time) trace.TraceID {
	ms, _ := clamp(t)
	return join(ms<<layout.SequenceBits, 0)
}

// Max returns the highest trace ID of t's millisecond, the inclusive upper bound of a range query,
// with the same limits as [Min].
func Max(t time.Time) trace.TraceID {
	ms, _ := clamp(t)
	return join(ms<<layout.SequenceBits|layout.MaxSequence, ^randflake.ID(0))
}

// clamp returns the milliseconds from the epoch to t, from 0 to layout.MaxMillis, and whether t has
// exactly these.
func clamp(t time.Time) (ms uint64, ok bool) {
	// Seconds are compared first: UnixMilli overflows in far years.
	switch s := t.Unix(); {
	case s < layout.EpochMillis/1000:
		return 0, false
	case s > (layout.EpochMillis+layout.MaxMillis)/1000:
		return layout.MaxMillis, false
	}
	ms = uint64(t.UnixMilli() - layout.EpochMillis)
	return min(ms, layout.MaxMillis), ms <= layout.MaxMillis
}
