package traceid

import (
	"errors"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/traceflake/traceflake/internal/layout"
	"github.com/traceflake/traceflake/randflake"
)

// Min returns the lowest trace ID of t's millisecond, the lower bound of a range query. A time
// before 2020 counts as the first millisecond, one past 2089 as the last. The bound itself may not
// be a valid ID.
func Min(t time.Time) trace.TraceID { return join(clamp(t)<<layout.SequenceBits, 0) }

// Max returns the highest trace ID of t's millisecond, the inclusive upper bound of a range query,
// with the same limits as [Min].
func Max(t time.Time) trace.TraceID {
	return join(clamp(t)<<layout.SequenceBits|MaxSequence, ^randflake.ID(0))
}

// millis returns t in whole milliseconds since the epoch, at most layout.MaxMillis. Errors:
// [ErrBeforeEpoch], [ErrAfterEnd].
func millis(t time.Time) (uint64, error) {
	// Seconds are compared first: UnixMilli overflows in far years.
	switch s := t.Unix(); {
	case s < layout.EpochMillis/1000:
		return 0, ErrBeforeEpoch
	case s > (layout.EpochMillis+layout.MaxMillis)/1000:
		return 0, ErrAfterEnd
	}
	ms := uint64(t.UnixMilli() - layout.EpochMillis)
	if ms > layout.MaxMillis {
		return 0, ErrAfterEnd
	}
	return ms, nil
}

func clamp(t time.Time) uint64 {
	ms, err := millis(t)
	if errors.Is(err, ErrAfterEnd) {
		return layout.MaxMillis
	}
	return ms
}
