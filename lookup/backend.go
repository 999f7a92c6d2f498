package lookup

import (
	"net/url"
	"strconv"
	"strings"
	"time"

	"go.opentelemetry.io/otel/trace"
)

// Backend is a kind of server that returns a trace by its ID.
type Backend string

// The backends.
const (
	// Tempo: GET /api/traces/ID and /api/v2/traces/ID.
	Tempo Backend = "tempo"
	// Jaeger: GET /api/traces/ID and /api/v3/traces/ID.
	Jaeger Backend = "jaeger"
)

// api is one form of lookup.
type api int

const (
	none api = iota
	tempo
	jaegerV1
	jaegerV3
)

// times are the query parameters of each API that contain a time. If a client sets one of them, no
// time is added.
var times = [...][]string{
	tempo:    {"start", "end"},
	jaegerV1: {"start", "end"},
	jaegerV3: {"startTime", "start_time", "endTime", "end_time"},
}

// lookup returns the API and the trace ID of a request for one trace, or zero values for other
// requests. The path before /api/ is any prefix that the server is configured with.
func (b Backend) lookup(path string) (api, trace.TraceID) {
	path = strings.TrimSuffix(path, "/")
	slash := strings.LastIndexByte(path, '/')
	under, digits := path[:max(slash, 0)], path[slash+1:]
	// The servers accept IDs without leading zeros.
	const length = 32
	id, err := trace.TraceIDFromHex(strings.ToLower(strings.Repeat("0",
		max(0, length-len(digits))) + digits))
	old := strings.HasSuffix(under, "/api/traces")
	switch {
	case err != nil:
	case b == Tempo && (old || strings.HasSuffix(under, "/api/v2/traces")):
		return tempo, id
	case b == Jaeger && old:
		return jaegerV1, id
	case b == Jaeger && strings.HasSuffix(under, "/api/v3/traces"):
		return jaegerV3, id
	}
	return none, trace.TraceID{}
}

// never is an end for the API that requires one: it excludes nothing, however wrong a clock is.
var never = time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC)

// bound returns the query parameters for spans from t on.
func (a api) bound(t time.Time) url.Values {
	switch a {
	case tempo:
		return url.Values{
			"start": {strconv.FormatInt(t.Unix(), 10)},
			"end":   {strconv.FormatInt(never.Unix(), 10)},
		}
	case jaegerV1:
		return url.Values{"start": {strconv.FormatInt(t.UnixMicro(), 10)}}
	case jaegerV3:
		text := t.UTC().Format(time.RFC3339Nano)
		return url.Values{"startTime": {text}, "start_time": {text}}
	}
	return nil
}
