package clickhouse

import "time"

// Span is what [Schema.Incomplete] needs to know of a span that came back.
type Span struct {
	TraceID              [16]byte
	SpanID, ParentSpanID string
	Start                time.Time
	Duration             time.Duration
}

// Incomplete returns those of the traces asked for which may have spans outside
// of the window that an Overlay looks at: nothing came back, as for an ID that is
// not ours, or no root, or a span whose parent is missing, or a span that ends
// past the window, so that its children may begin there. Look for them with
// [Schema.TracesEverywhere]. The window is that of all ids together, as in
// [Schema.Traces]. For an Owned table it returns nothing: it has no window.
//
// What it cannot notice is a span outside of the window that nothing within it
// tells of: a leaf whose clock is two minutes behind, or one that begins more than
// an hour after all that it belongs to has ended.
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

// clearTime is the time of an ID's clear half, as traceIDTime gives it.
func clearTime(id [16]byte) time.Time {
	var half uint64
	for _, b := range id[:8] {
		half = half<<8 | uint64(b)
	}
	const epoch = 1_577_836_800_000 // 2020-01-01, in milliseconds
	return time.UnixMilli(int64(half>>23) + epoch)
}
