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

// MaxSequence is the highest sequence number in a millisecond.
const MaxSequence = layout.MaxSequence

var (
	// ErrBeforeEpoch is returned for a time before 2020-01-01T00:00:00Z, which no trace ID can
	// carry. Keep such a record's ID as it is.
	ErrBeforeEpoch = errors.New("traceid: the time is before 2020-01-01T00:00:00Z")
	// ErrAfterEnd is returned for a time past 2089-09-06T15:47:35.551Z, the last of an ID.
	ErrAfterEnd = errors.New("traceid: the time is past 2089-09-06T15:47:35.551Z")
	// ErrInvalidParts is returned by [New] for a sequence past [MaxSequence] and for a zero half.
	ErrInvalidParts = errors.New("traceid: invalid parts")
)

// New returns the trace ID of t's millisecond, a sequence number from 0 to [MaxSequence], and a low
// half, which must not be zero. In the very first millisecond the sequence begins at 1: a high half
// of zero is what 64-bit IDs have. New does not make the ID unique; the caller must.
//
// Errors: [ErrBeforeEpoch], [ErrAfterEnd], [ErrInvalidParts].
func New(t time.Time, sequence uint32, low randflake.ID) (trace.TraceID, error) {
	ms, err := millis(t)
	switch {
	case err != nil:
		return trace.TraceID{}, err
	case sequence > MaxSequence:
		return trace.TraceID{}, fmt.Errorf("%w: the sequence is %d, the maximum is %d",
			ErrInvalidParts, sequence, MaxSequence)
	case ms == 0 && sequence == 0:
		return trace.TraceID{}, fmt.Errorf("%w: the high half would be zero: "+
			"the first millisecond begins at sequence 1", ErrInvalidParts)
	case low == 0:
		return trace.TraceID{}, fmt.Errorf("%w: the low half is zero", ErrInvalidParts)
	}
	return join(ms<<layout.SequenceBits|uint64(sequence), low), nil
}

// Time returns the time of the clear half: a whole millisecond from 2020 to 2089, UTC. It does not
// check whether the ID is in this format; see [Plausible].
func Time(id trace.TraceID) time.Time {
	return time.UnixMilli(layout.EpochMillis + int64(high(id)>>layout.SequenceBits)).UTC()
}

// Sequence returns the sequence number of id within its millisecond, 0 to [MaxSequence].
func Sequence(id trace.TraceID) uint32 { return uint32(high(id) & MaxSequence) }

// Low returns the low half: a Randflake ID if the trace ID is in this format.
func Low(id trace.TraceID) randflake.ID { return randflake.ID(binary.BigEndian.Uint64(id[8:])) }

func high(id trace.TraceID) uint64 { return binary.BigEndian.Uint64(id[:8]) }

func join(high uint64, low randflake.ID) (id trace.TraceID) {
	binary.BigEndian.PutUint64(id[:8], high)
	binary.BigEndian.PutUint64(id[8:], uint64(low))
	return id
}
