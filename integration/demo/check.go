package main

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"go.opentelemetry.io/otel/trace"
)

// summary is what ClickHouse stores of one trace.
type summary struct {
	TraceID  string `ch:"TraceId"`
	Spans    uint64
	Distinct uint64 // span IDs
	Services uint64
	Parent   string // of edge's first span
}

// check compares what was sent with what is stored, trace by trace.
func check(sent map[trace.TraceID]request, stored []summary) (verdict string, err error) {
	var (
		missing = make(map[string]summary, len(sent)) // by trace ID
		spans   uint64
		wrong   []error
	)
	for id, r := range sent {
		if r.sampled {
			want := summary{TraceID: id.String(), Spans: r.route.spans, Distinct: r.route.spans, Services: 2}
			if r.parent.IsValid() {
				want.Parent = r.parent.String()
			}
			missing[want.TraceID] = want
		}
	}
	sampled := len(missing)
	for _, s := range stored {
		switch want, ok := missing[s.TraceID]; {
		case !ok:
			wrong = append(wrong, fmt.Errorf("trace %q is stored but was not sent, or only as unsampled", s.TraceID))
		case s != want:
			wrong = append(wrong, fmt.Errorf("trace %s: stored %+v, want %+v", s.TraceID, s, want))
		}
		delete(missing, s.TraceID)
		spans += s.Spans
	}
	for _, id := range slices.Sorted(maps.Keys(missing)) {
		wrong = append(wrong, fmt.Errorf("trace %s is not stored", id))
	}
	if len(wrong) > 0 {
		return "", fmt.Errorf("%d of %d traces are not stored as they were sent:\n%w",
			len(wrong), len(sent), errors.Join(wrong[:min(len(wrong), 5)]...))
	}
	return fmt.Sprintf("all %d sampled traces are stored under the expected IDs, with all of their %d spans; none of the %d unsampled ones is stored",
		sampled, spans, len(sent)-sampled), nil
}

// mostTelling picks the trace to show: the latest one of edge's own IDs, which can be decoded, with
// the most spans.
func mostTelling(sent map[trace.TraceID]request) (best trace.TraceID) {
	value := func(id trace.TraceID) string {
		if r := sent[id]; r.sampled {
			return fmt.Sprintf("%d %02d %s", r.kind, r.route.spans, id)
		}
		return ""
	}
	for id := range sent {
		if value(id) > value(best) {
			best = id
		}
	}
	return best
}
