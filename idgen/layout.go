package idgen

import (
	"encoding/binary"
	"errors"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/traceflake/traceflake/randflake"
)

// EpochMillis is the first millisecond of the clear half, in Unix
// milliseconds: 2020-01-01T00:00:00Z.
const EpochMillis = 1_577_836_800_000

const (
	sequenceBits = 23
	millisBits   = 41

	maxSequence = 1<<sequenceBits - 1
	maxMillis   = 1<<millisBits - 1
)

var (
	// ErrBeforeEpoch comes for a time before 2020-01-01T00:00:00Z, which no
	// trace ID can carry. Keep such a record's ID as it is.
	ErrBeforeEpoch = errors.New("idgen: the time is before 2020-01-01T00:00:00Z")
	// ErrAfterEnd comes for a time past 2089-09-06T15:47:35.551Z, the last
	// that a trace ID can carry.
	ErrAfterEnd = errors.New("idgen: the time is past 2089-09-06T15:47:35.551Z")
)

// Time returns the time of the clear half: a whole millisecond from 2020 to
// 2089, UTC. It asks not whether the ID is ours; see [Plausible].
func Time(id trace.TraceID) time.Time {
	return timeOf(high(id) >> sequenceBits)
}

// Sequence returns the place of id within its millisecond, 0 to 2^23-1.
func Sequence(id trace.TraceID) uint32 {
	return uint32(high(id) & maxSequence)
}

// Plausible reports whether id might be ours: its high half is not zero, as it
// is for 64-bit IDs, and its time lies in [now-maxAge, now+skew]. Of random
// IDs, a share of (maxAge+skew) / 69.7 years passes.
func Plausible(id trace.TraceID, now time.Time, maxAge, skew time.Duration) bool {
	t := Time(id)
	return high(id) != 0 && !t.Before(now.Add(-maxAge)) && !t.After(now.Add(skew))
}

// MinTraceID returns the lowest trace ID of t's millisecond, the lower bound
// of a range query. A time before 2020 counts as the first millisecond, one
// past 2089 as the last. The bound itself may be no valid ID.
func MinTraceID(t time.Time) trace.TraceID {
	return join(clamp(t)<<sequenceBits, 0)
}

// MaxTraceID returns the highest trace ID of t's millisecond, the inclusive
// upper bound of a range query, with the same limits as [MinTraceID].
func MaxTraceID(t time.Time) trace.TraceID {
	return join(clamp(t)<<sequenceBits|maxSequence, ^randflake.ID(0))
}

func clamp(t time.Time) uint64 {
	ms, err := millisOf(t)
	if errors.Is(err, ErrAfterEnd) {
		return maxMillis
	}
	return ms
}

// millisOf returns t in milliseconds since the epoch, or 0 and an error.
func millisOf(t time.Time) (uint64, error) {
	// Seconds are compared first: UnixMilli overflows in far years.
	switch s := t.Unix(); {
	case s < EpochMillis/1000:
		return 0, ErrBeforeEpoch
	case s > (EpochMillis+maxMillis)/1000:
		return 0, ErrAfterEnd
	}
	ms := uint64(t.UnixMilli() - EpochMillis)
	if ms > maxMillis {
		return 0, ErrAfterEnd
	}
	return ms, nil
}

// clampMillis returns Unix milliseconds as milliseconds since the epoch, moved
// into their range.
func clampMillis(unix int64) uint64 {
	return uint64(min(max(unix-EpochMillis, 0), maxMillis))
}

func timeOf(ms uint64) time.Time {
	return time.UnixMilli(EpochMillis + int64(ms)).UTC() //nolint:gosec // 41 bits
}

func high(id trace.TraceID) uint64 { return binary.BigEndian.Uint64(id[:8]) }

func low(id trace.TraceID) randflake.ID { return randflake.ID(binary.BigEndian.Uint64(id[8:])) }

func join(high uint64, low randflake.ID) (id trace.TraceID) {
	binary.BigEndian.PutUint64(id[:8], high)
	binary.BigEndian.PutUint64(id[8:], uint64(low))
	return id
}

func spanID(id randflake.ID) (s trace.SpanID) {
	binary.BigEndian.PutUint64(s[:], uint64(id))
	return s
}
