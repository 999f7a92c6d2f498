// Package waterfall reads the spans of a trace from ClickHouse, and draws them as lines of text:
// their tree, a bar for the time of each, and what failed. It is apart from cli to be tested
// without servers or flags.
package waterfall

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

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
	id, parent    trace.SpanID
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

// Add adds a span. It keeps no reference to it.
func (t *Trace) Add(from Span) {
	id, _ := trace.SpanIDFromHex(from.SpanID)
	parent, _ := trace.SpanIDFromHex(from.ParentSpanID)
	start := from.Timestamp.UnixNano()
	s := span{
		id: id, parent: parent,
		service: t.once(cmp.Or(from.ServiceName, "unknown_service")), name: t.once(from.SpanName),
		start: start, end: max(start, start+int64(from.Duration)), // which may overflow
		// "Error", and STATUS_CODE_ERROR of older versions of the exporter
		failed: strings.HasSuffix(strings.ToUpper(from.StatusCode), "ERROR"),
	}
	if s.failed {
		s.message = t.once(messageOf(from))
	}
	if t.details {
		s.details = pairs(from.SpanAttributes, "")
		events := min(len(from.EventsTimestamp), len(from.EventsName), len(from.EventsAttributes))
		for i, at := range from.EventsTimestamp[:events] { // a view's may differ
			after := short(between(s.start, at.UnixNano()))
			s.details = append(s.details, Printable(from.EventsName[i])+" after "+after)
			s.details = append(s.details, pairs(from.EventsAttributes[i], "  ")...)
		}
	}
	t.spans = append(t.spans, s)
}

// messageOf returns why a span failed: its status, or the exception that it recorded.
func messageOf(s Span) string {
	message := s.StatusMessage
	for _, event := range s.EventsAttributes {
		message = cmp.Or(message, event["exception.message"])
	}
	return message
}

// pairs returns a line for each attribute.
func pairs(attributes map[string]string, indent string) (lines []string) {
	for _, key := range slices.Sorted(maps.Keys(attributes)) {
		lines = append(lines, indent+Printable(key+" = "+attributes[key]))
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
	known := make(map[trace.SpanID]bool, len(t.spans))
	for _, s := range t.spans {
		known[s.id] = true
	}
	var roots []int
	children := make(map[trace.SpanID][]int) // of equal IDs, the first span has the children
	for i, s := range t.spans {
		if !s.parent.IsValid() || s.parent == s.id || !known[s.parent] {
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
