package traceid

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/traceflake/traceflake/internal/layout"
	"github.com/traceflake/traceflake/randflake"
)

// ErrOutOfRange is returned for a time that no trace ID can carry. Keep such a record's ID.
var ErrOutOfRange = errors.New("traceid: the time is not between 2020-01-01T00:00:00Z " +
	"and 2089-09-06T15:47:35.551Z")

// New returns the trace ID of t's millisecond, a sequence number from 0 to 8388607, and a low half,
// which must not be zero. In the very first millisecond the sequence begins at 1, because 64-bit
// IDs have a clear half of zero. The error is [ErrOutOfRange] if no trace ID has this time. New
// does not ensure that the ID is unique; the caller must.
func New(t time.Time, sequence uint32, low randflake.ID) (trace.TraceID, error) {
	ms, ok := clamp(t)
	switch {
	case !ok:
		return trace.TraceID{}, ErrOutOfRange
	case sequence > layout.MaxSequence:
		return trace.TraceID{}, fmt.Errorf("traceid: the sequence is %d, the maximum is %d",
			sequence, layout.MaxSequence)
	case ms == 0 && sequence == 0:
		return trace.TraceID{}, errors.New("traceid: the clear half would be zero: " +
			"the first millisecond begins at sequence 1")
	case low == 0:
		return trace.TraceID{}, errors.New("traceid: the low half is zero")
	}
	return join(ms<<layout.SequenceBits|uint64(sequence), low), nil
}

// Time returns the time of the clear half: a whole millisecond from 2020 to 2089, UTC. For a 64-bit
// ID, which has no clear half, it returns the zero Time. It does not check whether another ID is in
// this format; see [Verifier].
func Time(id trace.TraceID) time.Time {
	if high(id) == 0 {
		return time.Time{}
	}
	return time.UnixMilli(layout.EpochMillis + int64(high(id)>>layout.SequenceBits)).UTC()
}

// Low returns the low half: a Randflake ID if the trace ID is in this format.
func Low(id trace.TraceID) randflake.ID { return randflake.ID(binary.BigEndian.Uint64(id[8:])) }

func high(id trace.TraceID) uint64 { return binary.BigEndian.Uint64(id[:8]) }

func join(high uint64, low randflake.ID) (id trace.TraceID) {
	binary.BigEndian.PutUint64(id[:8], high)
	binary.BigEndian.PutUint64(id[8:], uint64(low))
	return id
}
