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

// bound returns the query parameters for spans from start on.
type bound func(start time.Time) url.Values

// bounds has the requests for one trace, by the path before the ID and after any prefix that the
// server is configured with.
var bounds = map[Backend]map[string]bound{
	Tempo:  {"/api/traces": ofTempo, "/api/v2/traces": ofTempo},
	Jaeger: {"/api/traces": ofJaeger, "/api/v3/traces": ofJaegerV3},
}

// ofTempo also returns an end, which Tempo requires. It excludes nothing, however wrong a clock is.
func ofTempo(start time.Time) url.Values {
	end := time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC)
	return url.Values{"start": {strconv.FormatInt(start.Unix(), 10)},
		"end": {strconv.FormatInt(end.Unix(), 10)}}
}

func ofJaeger(start time.Time) url.Values {
	return url.Values{"start": {strconv.FormatInt(start.UnixMicro(), 10)}}
}

func ofJaegerV3(start time.Time) url.Values {
	text := start.UTC().Format(time.RFC3339Nano)
	return url.Values{"startTime": {text}, "start_time": {text}}
}

// times are the query parameters that contain a time. If a client sets one of them, none is added.
var times = []string{"start", "end", "startTime", "start_time", "endTime", "end_time"}

// lookup returns the bound and the trace ID of a request for one trace, or nil for other requests.
func (b Backend) lookup(path string) (bound, trace.TraceID) {
	path = strings.TrimSuffix(path, "/")
	slash := strings.LastIndexByte(path, '/')
	digits := path[slash+1:]
	// The servers accept IDs without leading zeros.
	const length = 32
	id, err := trace.TraceIDFromHex(strings.ToLower(strings.Repeat("0",
		max(0, length-len(digits))) + digits))
	for suffix, params := range bounds[b] {
		if err == nil && strings.HasSuffix(path[:max(slash, 0)], suffix) {
			return params, id
		}
	}
	return nil, trace.TraceID{}
}
