package main

import (
	"errors"
	"fmt"

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
		wrong []error
		seen  = make(map[trace.TraceID]bool, len(stored))
		spans uint64
	)
	for _, s := range stored {
		id, err := trace.TraceIDFromHex(s.TraceID)
		if err != nil {
			wrong = append(wrong, fmt.Errorf("stored trace ID %q: %w", s.TraceID, err))
			continue
		}
		seen[id] = true
		spans += s.Spans
		r, ok := sent[id]
		want := summary{TraceID: s.TraceID, Spans: uint64(r.route.spans), Distinct: uint64(r.route.spans), Services: 2}
		if r.parent.IsValid() {
			want.Parent = r.parent.String()
		}
		switch {
		case !ok:
			wrong = append(wrong, fmt.Errorf("trace %s is stored but was not sent", id))
		case !r.sampled:
			wrong = append(wrong, fmt.Errorf("trace %s is stored but was sent as unsampled", id))
		case s != want:
			wrong = append(wrong, fmt.Errorf("trace %s from %s: stored %+v, want %+v", id, r.kind, s, want))
		}
	}
	unsampled := 0
	for id, r := range sent {
		switch {
		case !r.sampled:
			unsampled++
		case !seen[id]:
			wrong = append(wrong, fmt.Errorf("trace %s from %s: not stored", id, r.kind))
		}
	}
	if len(wrong) > 0 {
		return "", fmt.Errorf("%d of %d traces are not stored as they were sent:\n%w",
			len(wrong), len(sent), errors.Join(wrong[:min(len(wrong), 5)]...))
	}
	return fmt.Sprintf("all %d sampled traces are stored under the expected IDs, with all of their %d spans; none of the %d unsampled ones is stored",
		len(sent)-unsampled, spans, unsampled), nil
}

// mostTelling picks the trace to show: one with an ID of our generator, which can be decoded, and
// with the most spans.
func mostTelling(sent map[trace.TraceID]request) (best trace.TraceID) {
	value := func(id trace.TraceID) int {
		r, ok := sent[id]
		if !ok || !r.sampled {
			return 0
		}
		return 1 + r.route.spans*int(1+r.kind)
	}
	for id := range sent {
		// Of equal ones it takes the latest, which has the greatest ID.
		if v, b := value(id), value(best); v > b || v == b && id.String() > best.String() {
			best = id
		}
	}
	return best
}
