package main

import (
	"context"
	_ "embed" // the SQL
	"encoding/hex"
	"regexp"
	"strings"
	"time"
)

//go:embed sql/tools.sql
var toolsSQL string

// question is a query, or several alike whose mean is measured.
type question struct {
	name string
	sql  []string
}

// questions returns our own queries and those of tools.sql, the same number for every layout.
func (d *dataset) questions(ctx context.Context, l layout) ([]question, error) {
	noon := day.Add(12*time.Hour + 30*time.Minute)
	// The same traces in every layout, whose IDs are ordered unless all are random, or random
	// unless none is.
	ordered, err := d.traces(ctx, "h1 % 100 >= 50")
	if err != nil {
		return nil, err
	}
	random, err := d.traces(ctx, "h1 % 100 = 0")
	if err != nil {
		return nil, err
	}
	absent := [][16]byte{{0x5e, 1, 2, 3, 4, 5, 6, 7, 8, 9}, {0xd3, 9, 8, 7, 6, 5, 4, 3, 2, 1}}
	many, err := d.ids(ctx, "SELECT TraceId FROM spans WHERE Timestamp >= '2026-10-14 12:30:00' "+
		"AND Timestamp < '2026-10-14 12:35:00' AND ParentSpanId = '' ORDER BY SpanId LIMIT 100")
	if err != nil {
		return nil, err
	}

	newest := bind(l.schema.Newest(noon.Add(-4*time.Minute), noon, [16]byte{}, 100))
	if l.theirs { // its newest roots, as Grafana lists them
		newest = "SELECT TraceId, ServiceName, SpanName, Timestamp, Duration FROM spans\n" +
			"WHERE Timestamp >= '2026-10-14 12:26:00' AND Timestamp < '2026-10-14 12:30:00' AND " +
			"ParentSpanId = ''\nORDER BY Timestamp DESC LIMIT 100"
	}
	each := func(ids [][16]byte, sql func(id [16]byte) string) (all []string) {
		for _, id := range ids {
			all = append(all, sql(id))
		}
		return all
	}
	one := func(id [16]byte) string { return l.traces(id) }
	all := []question{
		{"ours: one trace", each(ordered, one)},
		{"ours: one trace of a random ID, if there are any", each(random, one)},
		{"ours: an absent ID", each(absent, one)},
		{"ours: 100 traces of 5 min", []string{l.traces(many...)}},
		{"ours: newest 100 traces of 4 min", []string{newest}},
		{"ours: spans of 5 min", []string{bind(l.schema.Spans(noon, noon.Add(5*time.Minute)))}},
		{"TraceId = …", each(ordered, bare)},
		{"TraceId = … of a random ID, if there are any", each(random, bare)},
		{"TraceId = … of an absent ID", each(absent, bare)},
	}
	// A search without a time ends where the span is found: the mean of many tells
	// the layouts apart, one would be chance.
	spans := d.column(ctx, "SELECT SpanId FROM spans WHERE toDate(Timestamp, 'UTC') = "+
		"'2026-10-14' ORDER BY cityHash64(SpanId) LIMIT 24")
	id := hex.EncodeToString(ordered[0][:])
	var span string
	err = d.scan(ctx, "SELECT min(SpanId) FROM spans WHERE TraceId = '"+id+"'", &span)
	if err != nil {
		return nil, err
	}
	named := regexp.MustCompile(`(?m)^-- (\w.*: .*)\n(.*);$`)
	for _, m := range named.FindAllStringSubmatch(toolsSQL, -1) {
		on := func(span string) string {
			values := strings.NewReplacer("{table}", table, "{trace}", id, "{span}", span)
			return values.Replace(m[2])
		}
		q := question{m[1], []string{on(span)}}
		if strings.Contains(m[2], "WHERE SpanId = '{span}'") {
			q.sql = nil
			for _, span := range spans {
				q.sql = append(q.sql, on(span))
			}
		}
		all = append(all, q)
	}
	return all, nil
}

// traces returns four traces of the day.
func (d *dataset) traces(ctx context.Context, where string) ([][16]byte, error) {
	return d.ids(ctx, "SELECT TraceId FROM spans WHERE ParentSpanId = '' AND SpanId IN (SELECT "+
		"SpanId FROM source WHERE ParentSpanId = '' AND "+where+
		" AND toDate(Timestamp, 'UTC') = '2026-10-14' ORDER BY h2 LIMIT 4) ORDER BY SpanId")
}
