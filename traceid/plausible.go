package traceid

import (
	"time"

	"go.opentelemetry.io/otel/trace"
)

// clockSkew is how far the clock that dated an ID may be ahead of this machine's.
const clockSkew = time.Hour

// NotBefore returns the lower bound of a search for the spans of a trace: the time of id less
// slack. If that time is more than an hour ahead, or id is a 64-bit ID, it returns the zero Time,
// which excludes nothing.
//
// No span of the trace was recorded before the bound if id was generated at the trace's start and
// slack exceeds the sum of the errors of the two clocks involved. An hour is ample and costs a
// search little. An upper bound does not follow from an ID: a trace may last for days.
//
// Ordered IDs in other formats read as times in 2020 or in the future, so their bound excludes
// little or nothing. Random bits can put the bound anywhere, even in the middle of their trace. So
// repeat a search that found nothing without the bound, and if a missing span does harm, check IDs
// with a [Verifier] first.
func NotBefore(id trace.TraceID, slack time.Duration) time.Time {
	t := Time(id)
	if t.IsZero() || t.After(time.Now().Add(clockSkew)) {
		return time.Time{}
	}
	return t.Add(-max(slack, 0))
}
