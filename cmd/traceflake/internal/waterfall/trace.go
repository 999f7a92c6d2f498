// Package waterfall draws the spans of a trace as lines of text: their tree, a bar for the time of
// each, and what failed. It reads nothing itself.
package waterfall

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"go.opentelemetry.io/otel/trace"
)

// Span is a row of the exporter's table of spans. Tags are the names of the columns.
type Span struct {
	Timestamp          time.Time
	TraceID            string `json:"TraceId"`
	SpanID             string `json:"SpanId"`
	ParentSpanID       string `json:"ParentSpanId"`
	TraceState         string
	SpanName           string
	SpanKind           string
	ServiceName        string
	ResourceAttributes map[string]string
	ScopeName          string
	ScopeVersion       string
	SpanAttributes     map[string]string
	Duration           uint64
	StatusCode         string
	StatusMessage      string
	EventsTimestamp    []time.Time         `json:"Events.Timestamp"`
	EventsName         []string            `json:"Events.Name"`
	EventsAttributes   []map[string]string `json:"Events.Attributes"`
	LinksTraceID       []string            `json:"Links.TraceId"`
	LinksSpanID        []string            `json:"Links.SpanId"`
	LinksTraceState    []string            `json:"Links.TraceState"`
	LinksAttributes    []map[string]string `json:"Links.Attributes"`
}

// Trace collects the spans of a trace.
type Trace struct {
	id      trace.TraceID
	spans   []span
	details bool
}

// span holds the fields of a span that its lines show. Times are Unix nanoseconds.
type span struct {
	id, parent        trace.SpanID
	service, name     string
	start, end        int64
	failed            bool
	message           []string // why it failed
	details, resource []string // its attributes, events and links, and those of its resource
	depth             int
}

// New returns a trace without spans. With details, attributes, events and links are kept and drawn.
func New(id trace.TraceID, details bool) *Trace {
	return &Trace{id: id, details: details}
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
		service: printable(cmp.Or(from.ServiceName, "unknown_service")),
		name:    printable(from.SpanName),
		start:   start, end: max(start, start+int64(from.Duration)), // which may overflow
		// "Error", and STATUS_CODE_ERROR of older versions of the exporter
		failed: strings.HasSuffix(strings.ToUpper(from.StatusCode), "ERROR"),
	}
	if message := messageOf(from); s.failed && message != "" {
		s.message = lines(message)
	}
	if t.details {
		s.details, s.resource = detailsOf(from), pairs(from.ResourceAttributes)
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

// detailsOf returns the lines for a span's attributes, events and links. Those of a view may lack
// some of the parts.
func detailsOf(s Span) (all []string) {
	all = pairs(s.SpanAttributes)
	for i := range min(len(s.EventsTimestamp), len(s.EventsName), len(s.EventsAttributes)) {
		after := short(s.EventsTimestamp[i].Sub(s.Timestamp))
		all = append(all, printable(s.EventsName[i])+" after "+after)
		all = append(all, indented(pairs(s.EventsAttributes[i]))...)
	}
	for i := range min(len(s.LinksTraceID), len(s.LinksSpanID), len(s.LinksAttributes)) {
		all = append(all, "link to span "+printable(s.LinksSpanID[i])+" of trace "+
			printable(s.LinksTraceID[i]))
		all = append(all, indented(pairs(s.LinksAttributes[i]))...)
	}
	return all
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
	children := make(map[trace.SpanID][]span) // those of no span are roots
	for _, s := range t.spans {
		if !known[s.parent] || s.parent == s.id {
			s.parent = trace.SpanID{}
		}
		children[s.parent] = append(children[s.parent], s)
	}
	var sorted []span
	var walk func(parent trace.SpanID, depth int)
	walk = func(parent trace.SpanID, depth int) {
		all := children[parent]
		delete(children, parent) // of equal IDs, the first span has the children
		for _, s := range all {
			s.depth = depth
			sorted = append(sorted, s)
			walk(s.id, depth+1)
		}
	}
	walk(trace.SpanID{}, 0)
	for _, s := range t.spans { // what is left are cycles
		walk(s.parent, 0)
	}
	return sorted
}
