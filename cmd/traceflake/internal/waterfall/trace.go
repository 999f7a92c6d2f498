// Package waterfall draws the spans of a trace as lines of text: their tree, and a bar for the time
// of each. It is apart from cli to be tested without servers or flags.
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

// Trace collects the spans of a trace. It keeps about 100 bytes for each.
type Trace struct {
	id    trace.TraceID
	spans []span
	texts map[string]string // each service and name once
}

// span holds the fields of a span that its line shows. Times are Unix nanoseconds.
type span struct {
	id, parent    pcommon.SpanID
	service, name string
	start, end    int64
	failed        bool
	depth         int
}

// New returns a trace without spans.
func New(id trace.TraceID) *Trace {
	return &Trace{id: id, texts: make(map[string]string)}
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
				t.spans = append(t.spans, span{
					id: s.SpanID(), parent: s.ParentSpanID(),
					service: t.once(service), name: t.once(s.Name()),
					start:  int64(s.StartTimestamp()),
					end:    max(int64(s.StartTimestamp()), int64(s.EndTimestamp())),
					failed: s.Status().Code() == ptrace.StatusCodeError,
				})
			}
		}
	}
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

// late reports whether s starts too far from the time of the trace's ID.
func (t *Trace) late(s span) bool {
	return time.Unix(0, s.start).Sub(traceid.Time(t.id)).Abs() > late
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
