package traceid

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/traceflake/traceflake/randflake"
)

const (
	// EpochMillis is the first millisecond of the clear half, in Unix time: 2020-01-01T00:00:00Z.
	EpochMillis = 1_577_836_800_000
	// SequenceBits is the width of the sequence.
	SequenceBits = 23
	// MaxSequence is the highest sequence number in a millisecond.
	MaxSequence = 1<<SequenceBits - 1
	// MaxMillis is the last millisecond, counted from EpochMillis: 2089-09-06T15:47:35.551Z.
	MaxMillis = 1<<(64-SequenceBits) - 1
)

var (
	// ErrBeforeEpoch is returned for a time before 2020-01-01T00:00:00Z, which no trace ID can carry.
	// Keep such a record's ID as it is.
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
	ms, err := Millis(t)
	switch {
	case err != nil:
		return trace.TraceID{}, err
	case sequence > MaxSequence:
		return trace.TraceID{}, fmt.Errorf("%w: the sequence is %d, the maximum is %d", ErrInvalidParts, sequence, MaxSequence)
	case ms == 0 && sequence == 0:
		return trace.TraceID{}, fmt.Errorf("%w: the high half would be zero, so the first millisecond begins at sequence 1", ErrInvalidParts)
	case low == 0:
		return trace.TraceID{}, fmt.Errorf("%w: the low half is zero", ErrInvalidParts)
	}
	return join(ms<<SequenceBits|uint64(sequence), low), nil
}

// Time returns the time of the clear half: a whole millisecond from 2020 to 2089, UTC. It does not
// check whether the ID is in this format; see [Plausible].
func Time(id trace.TraceID) time.Time {
	return time.UnixMilli(EpochMillis + int64(high(id)>>SequenceBits)).UTC()
}

// Sequence returns the sequence number of id within its millisecond, 0 to [MaxSequence].
func Sequence(id trace.TraceID) uint32 { return uint32(high(id) & MaxSequence) }

// Low returns the low half: a Randflake ID if the trace ID is in this format.
func Low(id trace.TraceID) randflake.ID { return randflake.ID(binary.BigEndian.Uint64(id[8:])) }

// Plausible reports whether id might be in this format: its high half is not zero, as
// that of a 64-bit ID is, and its time lies in [now-maxAge, now+skew]. A
// fraction of (maxAge+skew) / 69.7 years of random IDs passes.
func Plausible(id trace.TraceID, now time.Time, maxAge, skew time.Duration) bool {
	t := Time(id)
	return high(id) != 0 && !t.Before(now.Add(-maxAge)) && !t.After(now.Add(skew))
}

// Min returns the lowest trace ID of t's millisecond, the lower bound of a range query. A time
// before 2020 counts as the first millisecond, one past 2089 as the last. The bound itself may not
// be a valid ID.
func Min(t time.Time) trace.TraceID { return join(clamp(t)<<SequenceBits, 0) }

// Max returns the highest trace ID of t's millisecond, the inclusive upper bound of a range query,
// with the same limits as [Min].
func Max(t time.Time) trace.TraceID {
	return join(clamp(t)<<SequenceBits|MaxSequence, ^randflake.ID(0))
}

// Millis returns t in whole milliseconds since [EpochMillis], at most [MaxMillis]. Errors:
// [ErrBeforeEpoch], [ErrAfterEnd].
func Millis(t time.Time) (uint64, error) {
	// Seconds are compared first: UnixMilli overflows in far years.
	switch s := t.Unix(); {
	case s < EpochMillis/1000:
		return 0, ErrBeforeEpoch
	case s > (EpochMillis+MaxMillis)/1000:
		return 0, ErrAfterEnd
	}
	ms := uint64(t.UnixMilli() - EpochMillis)
	if ms > MaxMillis {
		return 0, ErrAfterEnd
	}
	return ms, nil
}

func clamp(t time.Time) uint64 {
	ms, err := Millis(t)
	if errors.Is(err, ErrAfterEnd) {
		return MaxMillis
	}
	return ms
}

func high(id trace.TraceID) uint64 { return binary.BigEndian.Uint64(id[:8]) }

func join(high uint64, low randflake.ID) (id trace.TraceID) {
	binary.BigEndian.PutUint64(id[:8], high)
	binary.BigEndian.PutUint64(id[8:], uint64(low))
	return id
}

// clockSkew is how far the clock that dated an ID may be ahead of this machine's.
const clockSkew = time.Hour

// NotBefore returns the lower bound of a search for the spans of a trace: the time of id less
// slack. If that time is more than an hour ahead, or id is a 64-bit one, it returns the zero Time,
// which excludes nothing.
//
// No span of the trace was recorded before the bound if id was generated at the trace's start and
// slack exceeds the sum of the errors of the two clocks involved. An hour is ample and costs a
// search little. An upper bound does not follow from an ID: a trace may go on for days.
//
// Other ordered IDs of today read as times in 2020 or in the future, so that their bound excludes
// little or nothing. Random bits can put the bound anywhere, even in the middle of their trace. So
// repeat a search that found nothing without the bound, and check IDs with a [Verifier] first if a
// missing span does harm.
func NotBefore(id trace.TraceID, slack time.Duration) time.Time {
	t := Time(id)
	if high(id) == 0 || t.After(time.Now().Add(clockSkew)) {
		return time.Time{}
	}
	return t.Add(-max(slack, 0))
}
