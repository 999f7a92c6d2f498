// Package waterfall reads the spans of a trace from ClickHouse, as OTLP, and draws them as lines of
// text: their tree, a bar for the time of each, and what failed. It is apart from cli to be tested
// without servers or flags.
package waterfall

import (
	"cmp"
	"slices"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/otel/trace"

	"github.com/traceflake/traceflake/traceid"
)

// late is how far a span may start from the time of its trace ID before it is marked as late.
const late = time.Hour

// Trace collects the spans of a trace. Without details it keeps about 100 bytes for each.
type Trace struct {
	id      trace.TraceID
	spans   []span
	texts   map[string]string // each service, name and message once
	details bool
}

// span holds the fields of a span that its line shows. Times are Unix nanoseconds.
type span struct {
	id, parent    pcommon.SpanID
	service, name string
	start, end    int64
	failed        bool
	message       string   // why it failed
	details       []string // its attributes and events
	depth         int
}

// New returns a trace without spans. With details, the attributes and events of the spans are kept
// and drawn.
func New(id trace.TraceID, details bool) *Trace {
	return &Trace{id: id, texts: make(map[string]string), details: details}
}

// between returns the time from one span's time to another's: 292 years if it is longer.
func between(from, to int64) time.Duration { return time.Unix(0, to).Sub(time.Unix(0, from)) }

// Add adds the spans of td. It keeps no reference to td.
func (t *Trace) Add(td ptrace.Traces) {
	for _, rs := range td.ResourceSpans().All() {
		service := "unknown_service"
		if v, ok := rs.Resource().Attributes().Get("service.name"); ok {
			service = v.AsString()
		}
		for _, ss := range rs.ScopeSpans().All() {
			for _, s := range ss.Spans().All() {
				t.add(service, s)
			}
		}
	}
}

func (t *Trace) add(service string, from ptrace.Span) {
	s := span{
		id: from.SpanID(), parent: from.ParentSpanID(),
		service: t.once(service), name: t.once(from.Name()),
		start:  int64(from.StartTimestamp()),
		end:    max(int64(from.StartTimestamp()), int64(from.EndTimestamp())),
		failed: from.Status().Code() == ptrace.StatusCodeError,
	}
	if s.failed {
		s.message = t.once(messageOf(from))
	}
	if t.details {
		s.details = pairs(from.Attributes(), "")
		for _, event := range from.Events().All() {
			after := short(between(s.start, int64(event.Timestamp())))
			s.details = append(s.details, Printable(event.Name())+" after "+after)
			s.details = append(s.details, pairs(event.Attributes(), "  ")...)
		}
	}
	t.spans = append(t.spans, s)
}

// messageOf returns why a span failed: its status, or the exception that it recorded.
func messageOf(s ptrace.Span) string {
	message := s.Status().Message()
	for _, event := range s.Events().All() {
		if text, ok := event.Attributes().Get("exception.message"); ok && message == "" {
			message = text.AsString()
		}
	}
	return message
}

// pairs returns a line for each attribute.
func pairs(attributes pcommon.Map, indent string) (lines []string) {
	for key, value := range attributes.All() {
		lines = append(lines, indent+Printable(key+" = "+value.AsString()))
	}
	return lines
}

// once returns a printable copy of text, the same one for equal texts.
func (t *Trace) once(text string) string {
	if known, ok := t.texts[text]; ok {
		return known
	}
	shown := Printable(text)
	t.texts[text] = shown
	return shown
}

// timed reports whether the trace's ID has a time: one of 64 bits has none.
func (t *Trace) timed() bool { return [8]byte(t.id[:8]) != [8]byte{} }

// late reports whether s starts too far from the time of the trace's ID.
func (t *Trace) late(s span) bool {
	return t.timed() && time.Unix(0, s.start).Sub(traceid.Time(t.id)).Abs() > late
}

// ordered sorts the spans as the tree is read, parents before their children and siblings by
// time, and sets their depths. Spans whose parent is missing are roots, and so is the earliest span
// of a cycle.
func (t *Trace) ordered() []span {
	slices.SortStableFunc(t.spans, func(a, b span) int {
		return cmp.Or(cmp.Compare(a.start, b.start), cmp.Compare(b.end, a.end))
	})
	known := make(map[pcommon.SpanID]bool, len(t.spans))
	for _, s := range t.spans {
		known[s.id] = true
	}
	var roots []int
	children := make(map[pcommon.SpanID][]int) // of equal IDs, the first span has the children
	for i, s := range t.spans {
		if s.parent.IsEmpty() || s.parent == s.id || !known[s.parent] {
			roots = append(roots, i)
		} else {
			children[s.parent] = append(children[s.parent], i)
		}
	}
	sorted := make([]span, 0, len(t.spans))
	seen := make([]bool, len(t.spans))
	var walk func(indexes []int, depth int)
	walk = func(indexes []int, depth int) {
		for _, i := range indexes {
			if !seen[i] {
				seen[i] = true
				t.spans[i].depth = depth
				sorted = append(sorted, t.spans[i])
				walk(children[t.spans[i].id], depth+1)
			}
		}
	}
	walk(roots, 0)
	for i := range t.spans { // what is left are cycles
		walk([]int{i}, 0)
	}
	return sorted
}
