package clickhouse

import (
	"encoding/binary"
	"time"
)

// Span has the fields of a returned span that [Incomplete] needs.
type Span struct {
	TraceID              [16]byte
	SpanID, ParentSpanID string
	Start                time.Time
	Duration             time.Duration
}

// Incomplete returns the requested traces that may have spans outside the bounds
// of [Traces]: those of which no span was found, as for some foreign IDs, or no
// root, or a span whose parent is missing, and on an Overlay those with a span
// that ends past its window, so that its children may begin there. Query them with
// [TracesEverywhere]. The bounds are those of all ids together, as in [Traces].
//
// It cannot detect spans outside the bounds that no span within them indicates: a
// leaf whose clock is behind by more than Slack or, on an Overlay, one that begins
// over an hour after the rest of its trace has ended.
func Incomplete[ID ~[16]byte](s Schema, ids []ID, found []Span) []ID {
	type seen struct {
		spans   map[string]bool
		parents map[string]bool
		root    bool
		end     time.Time
	}
	traces := map[[16]byte]*seen{}
	for _, span := range found {
		t := traces[span.TraceID]
		if t == nil {
			t = &seen{spans: map[string]bool{}, parents: map[string]bool{}}
			traces[span.TraceID] = t
		}
		t.spans[span.SpanID] = true
		if span.ParentSpanID == "" {
			t.root = true
		} else {
			t.parents[span.ParentSpanID] = true
		}
		if end := span.Start.Add(span.Duration); end.After(t.end) {
			t.end = end
		}
	}
	var last time.Time
	for _, id := range ids {
		if at := clearTime(id); at.After(last) {
			last = at
		}
	}
	orphan := func(t *seen) bool {
		for parent := range t.parents {
			if !t.spans[parent] {
				return true
			}
		}
		return false
	}
	late := func(t *seen) bool { return s.Layout == Overlay && !t.end.Before(last.Add(windowEnd)) }
	var again []ID
	asked := map[ID]bool{}
	for _, id := range ids {
		if asked[id] {
			continue
		}
		asked[id] = true
		if t := traces[id]; t == nil || !t.root || orphan(t) || late(t) {
			again = append(again, id)
		}
	}
	return again
}

// clearTime is the time of an ID's clear half, as returned by traceIDTime.
func clearTime(id [16]byte) time.Time {
	const epoch = 1_577_836_800_000 // 2020-01-01, in milliseconds
	return time.UnixMilli(int64(binary.BigEndian.Uint64(id[:])>>23) + epoch)
}
