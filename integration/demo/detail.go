package main

import (
	"cmp"
	"slices"
	"strings"
	"time"
)

// detail is what the page shows of an opened span.
type detail struct {
	ID, Parent                  string
	Facts, Attributes, Resource []pair
	Events                      []eventRow
	Links                       []linkRow
}

type pair struct{ Key, Value string }

type eventRow struct {
	Name, At   string
	Attributes []pair
}

type linkRow struct {
	TraceID, SpanID string
	Attributes      []pair
}

// newDetail gives times relative to the start of the trace.
func newDetail(s span, start time.Time) detail {
	d := detail{ID: s.SpanID, Parent: s.ParentSpanID, Attributes: pairs(s.SpanAttributes), Resource: pairs(s.ResourceAttributes)}
	for _, fact := range []pair{
		{"began at", milliseconds(s.Timestamp.Sub(start))}, {"kind", s.SpanKind},
		{"status", strings.TrimSpace(s.StatusCode + " " + s.StatusMessage)}, {"tracestate", s.TraceState},
		{"scope", strings.TrimSpace(s.ScopeName + " " + s.ScopeVersion)},
	} {
		if fact.Value != "" {
			d.Facts = append(d.Facts, fact)
		}
	}
	for i, name := range s.EventNames {
		d.Events = append(d.Events, eventRow{name, milliseconds(s.EventTimes[i].Sub(start)), pairs(s.EventAttributes[i])})
	}
	for i, id := range s.LinkTraceIDs {
		d.Links = append(d.Links, linkRow{id, s.LinkSpanIDs[i], pairs(s.LinkAttributes[i])})
	}
	return d
}

func pairs(attributes map[string]string) []pair {
	list := make([]pair, 0, len(attributes))
	for key, value := range attributes {
		list = append(list, pair{key, value})
	}
	slices.SortFunc(list, func(a, b pair) int { return cmp.Compare(a.Key, b.Key) })
	return list
}
