package clickhouse

import "time"

// Span has the fields of a returned span that [Schema.Incomplete] needs.
type Span struct {
	TraceID              [16]byte
	SpanID, ParentSpanID string
	Start                time.Time
	Duration             time.Duration
}

// Incomplete returns the requested traces that may have spans outside the window
// of an Overlay: those of which no span was found, as for a foreign ID, or no
// root, or a span whose parent is missing, or a span that ends past the window, so
// that its children may begin there. Query them with [Schema.TracesEverywhere]. The window is that of all ids together, as in
// [Schema.Traces]. For an Owned table it returns nothing: it has no window.
//
// It cannot detect spans outside the window that no span within it indicates: a
// leaf whose clock is two minutes behind, or one that begins more than an hour
// after the rest of its trace has ended.
func (s Schema) Incomplete(ids [][16]byte, found []Span) [][16]byte {
	if s.Layout == Owned {
		return nil
	}
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
	var again [][16]byte
	asked := map[[16]byte]bool{}
	for _, id := range ids {
		if asked[id] {
			continue
		}
		asked[id] = true
		if t := traces[id]; t == nil || !t.root || orphan(t) || !t.end.Before(last.Add(windowEnd)) {
			again = append(again, id)
		}
	}
	return again
}

// clearTime is the time of an ID's clear half, as returned by traceIDTime.
func clearTime(id [16]byte) time.Time {
	var half uint64
	for _, b := range id[:8] {
		half = half<<8 | uint64(b)
	}
	const epoch = 1_577_836_800_000 // 2020-01-01, in milliseconds
	return time.UnixMilli(int64(half>>23) + epoch)
}
