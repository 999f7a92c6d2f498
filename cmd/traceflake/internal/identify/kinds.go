package identify

import (
	"encoding/binary"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/traceflake/traceflake/traceid"
)

// The kinds of trace IDs.
const (
	kindTraceflake = "traceflake trace ID"
	kindUUIDv7     = "UUID v7"
	kindULID       = "ULID"
	kindXRay       = "X-Ray" // and others that begin with Unix seconds, such as Brave's
	kindDatadog    = "Datadog 128-bit"
	kindShort      = "64 bits" // B3, padded with zeros: it contains no time
	kindRandom     = "random 128 bits"
	kindUUIDv4     = "UUID v4"
)

var (
	// foreignFrom is when ULID, X-Ray and Brave's 128 bits appeared. UUIDv7 and Datadog's are
	// younger.
	foreignFrom = time.Date(2016, 1, 1, 0, 0, 0, 0, time.UTC)
	// oursFrom is the first time that our trace IDs encode.
	oursFrom = time.UnixMilli(traceid.EpochMillis)
)

// kinds returns the kinds that id, whose high half is not zero, may be.
//
// Apart from a UUID's version, no bit shows what an ID is. A kind is listed if its time is
// plausible: from the year of the kind's first use to an hour after now. So several may be listed:
// a ULID of 2026, for example, may also be a traceflake ID of 2020.
func kinds(id trace.TraceID, now time.Time) []Candidate {
	all := []Candidate{{Kind: kindRandom, FalsePositives: 1}}
	// field adds a kind whose time is in a field of so many milliseconds if t is plausible. Of all
	// IDs, marked have the other properties of the kind.
	field := func(kind string, t, from time.Time, millis, marked float64) {
		if limit := now.Add(ahead); !t.Before(from) && !t.After(limit) {
			all = append(all, Candidate{Kind: kind, Time: t, FalsePositives: marked * float64(limit.Sub(from).Milliseconds()) / millis})
		}
	}
	high := binary.BigEndian.Uint64(id[:8])
	field(kindTraceflake, traceid.Time(id), oursFrom, traceid.MaxMillis+1, 1)
	unixMillis := time.UnixMilli(int64(high >> 16)).UTC()
	if id[6]>>4 == 7 && id[8]>>6 == 0b10 {
		field(kindUUIDv7, unixMillis, foreignFrom, 1<<48, 1.0/64)
	}
	field(kindULID, unixMillis, foreignFrom, 1<<48, 1)
	unixSeconds := time.Unix(int64(high>>32), 0).UTC()
	if uint32(high) == 0 {
		field(kindDatadog, unixSeconds, foreignFrom, 1000<<32, 0x1p-32)
	} else {
		field(kindXRay, unixSeconds, foreignFrom, 1000<<32, 1)
	}
	return all
}

// ahead is how far the clock that dated an ID may be ahead of ours.
const ahead = time.Hour
