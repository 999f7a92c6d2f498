package traceid

import (
	"cmp"
	"encoding/binary"
	"slices"
	"time"

	"go.opentelemetry.io/otel/trace"
)

// The names of the kinds of trace IDs that [Kinds] knows.
const (
	KindTraceflake = "traceflake trace ID"
	KindUUIDv7     = "UUID v7"
	KindULID       = "ULID"
	KindXRay       = "X-Ray" // and others that begin with Unix seconds, such as Brave's
	KindDatadog    = "Datadog 128-bit"
	KindShort      = "64 bits" // B3, padded with zeros: it contains no time
	KindRandom     = "random 128 bits"
)

// Kind is one kind of trace ID that an ID may be.
type Kind struct {
	Name string
	// Time is the time in the ID, UTC; the zero Time if the kind has none.
	Time time.Time
	// Chance is the fraction of random 128 bits that look like this kind.
	Chance float64
}

// Kinds returns the kinds that id may be, the likeliest first: the one that the fewest random IDs
// look like. It returns at least one kind, and only one if its Chance is below one in a million.
//
// Apart from a UUID's version, no bit shows what an ID is. A kind is listed if its time is
// plausible: from the year of the kind's first use to an hour after now. So several may be listed:
// a ULID of 2026, for example, may also be a traceflake ID of 2020. [Inspect] is more certain
// about traceflake IDs, but needs a secret.
func Kinds(id trace.TraceID, now time.Time) []Kind {
	if high(id) == 0 {
		return []Kind{{Name: KindShort, Chance: 0x1p-64}}
	}
	kinds := append(make([]Kind, 0, 5), Kind{Name: KindRandom, Chance: 1})
	// field adds a kind whose time is in a field of so many milliseconds if t is plausible. Of all
	// IDs, marked have the other properties of the kind.
	field := func(name string, t, from time.Time, millis, marked float64) {
		if limit := now.Add(clockSkew); !t.Before(from) && !t.After(limit) {
			kinds = append(kinds, Kind{name, t, marked * float64(limit.Sub(from).Milliseconds()) / millis})
		}
	}
	field(KindTraceflake, Time(id), time.UnixMilli(EpochMillis), 1<<(64-SequenceBits), 1)
	unixMillis := time.UnixMilli(int64(high(id) >> 16)).UTC()
	if id[6]>>4 == 7 && id[8]>>6 == 0b10 {
		field(KindUUIDv7, unixMillis, foreignFrom, 1<<48, 1.0/64)
	}
	field(KindULID, unixMillis, foreignFrom, 1<<48, 1)
	unixSeconds := time.Unix(int64(high(id)>>32), 0).UTC()
	if binary.BigEndian.Uint32(id[4:]) == 0 {
		field(KindDatadog, unixSeconds, foreignFrom, 1000<<32, 0x1p-32)
	} else {
		field(KindXRay, unixSeconds, foreignFrom, 1000<<32, 1)
	}
	slices.SortFunc(kinds, func(a, b Kind) int { return cmp.Compare(a.Chance, b.Chance) })
	if kinds[0].Chance < 1e-6 { // the others are coincidences
		return kinds[:1]
	}
	return kinds
}

var (
	// foreignFrom is when ULID, X-Ray and Brave's 128 bits appeared. UUIDv7 and Datadog's are
	// younger.
	foreignFrom = time.Date(2016, 1, 1, 0, 0, 0, 0, time.UTC)
	clockSkew   = time.Hour
)

// NotBefore returns the lower bound of a search for the spans of a trace: the time of the
// likeliest of the [Kinds] that id may be, less slack. If that kind contains no time, it returns
// the zero Time, which excludes nothing.
//
// No span of the trace was recorded before the bound if id was generated at the trace's start and
// slack exceeds the sum of the errors of the two clocks involved. An hour is ample and costs a
// search little. An upper bound does not follow from an ID: a trace may go on for days.
//
// Random bits that happen to look like a time can put the bound anywhere, even in the middle of
// their trace. So repeat a search that found nothing without the bound, and check IDs with a
// [Verifier] first if a missing span does harm.
func NotBefore(id trace.TraceID, slack time.Duration) time.Time {
	t := Kinds(id, time.Now())[0].Time
	if t.IsZero() {
		return t
	}
	return t.Add(-max(slack, 0))
}
