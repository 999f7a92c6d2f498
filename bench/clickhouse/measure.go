package main

import (
	"context"
	_ "embed" // the SQL
	"encoding/hex"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/traceflake/traceflake/clickhouse"
)

//go:embed sql/tools.sql
var toolsSQL string

// cost is what a query read, with ClickHouse's caches empty; of several alike, the mean.
type cost struct {
	Name string
	Rows uint64
	Disk uint64 // bytes from files: columns, marks and indexes
}

// measured is one layout, merged.
type measured struct {
	layout
	Bytes  float64 // on disk, a span, with the lookup table
	Parts  int     // before the final merge
	Merged int     // parts after it
	// Bytes of memory for a million spans, lookup table included.
	Key         float64 // primary key, if all of it was used
	Granularity float64 // of index granularity, never evicted
	Marks       float64 // in the mark cache after all columns were read
	Costs       []cost
	// of each round to load and merge, for one of the exporter's, with reading the spans in both
	CPU []float64
}

func (m measured) cost(name string) (cost, bool) {
	i := slices.IndexFunc(m.Costs, func(c cost) bool { return c.Name == name })
	if i < 0 {
		return cost{}, false
	}
	return m.Costs[i], true
}

// question is one query, or several alike.
type question struct {
	name string
	sql  []string
}

func (d *dataset) measure(ctx context.Context, l layout) (m measured, err error) {
	m = measured{layout: l}
	if _, m.Parts, err = d.load(ctx, l, block); err != nil {
		return m, err
	}
	if err := d.memory(ctx, &m); err != nil {
		return m, err
	}
	questions, err := d.questions(ctx, l)
	if err != nil {
		return m, err
	}
	for _, q := range questions {
		c := cost{Name: q.name}
		for _, sql := range q.sql {
			r, err := d.Reads(ctx, sql)
			if err != nil {
				return m, fmt.Errorf("%s: %w", q.name, err)
			}
			c.Rows, c.Disk = c.Rows+r.Read.Rows, c.Disk+r.Read.Disk
		}
		c.Rows, c.Disk = c.Rows/uint64(len(q.sql)), c.Disk/uint64(len(q.sql))
		m.Costs = append(m.Costs, c)
	}
	return m, nil
}

// memory measures disk and memory. Where a cache keeps primary keys, it is left out for a moment:
// its size is rounded up for each part, which a table of few spans shows.
func (d *dataset) memory(ctx context.Context, m *measured) error {
	const tables = " FROM system.parts WHERE active AND database = currentDatabase() AND " +
		"startsWith(table, 'spans')"
	cached := func(on string) error {
		return d.Exec(ctx, "ALTER TABLE spans MODIFY SETTING use_primary_key_cache = "+on,
			"DETACH TABLE spans SYNC", "ATTACH TABLE spans")
	}
	if err := cached("0"); err != nil {
		return err
	}
	if err := d.Exec(ctx, "SYSTEM DROP MARK CACHE", "SELECT * FROM spans WHERE Timestamp > "+
		"'2000-01-01' AND ServiceName != '' AND NOT ignore(*) FORMAT Null"); err != nil {
		return err
	}
	for query, into := range map[string]any{
		"SELECT sum(bytes_on_disk)" + tables:                               &m.Bytes,
		"SELECT count()" + tables:                                          &m.Merged,
		"SELECT sum(primary_key_bytes_in_memory)" + tables:                 &m.Key,
		"SELECT sum(index_granularity_bytes_in_memory)" + tables:           &m.Granularity,
		"SELECT value FROM system.metrics WHERE metric = 'MarkCacheBytes'": &m.Marks,
	} {
		if err := d.scan(ctx, query, into); err != nil {
			return err
		}
	}
	m.Bytes /= float64(d.spans)
	for _, bytes := range []*float64{&m.Key, &m.Granularity, &m.Marks} {
		*bytes /= float64(d.spans) / 1e6
	}
	if schemas[m.Name].Overlay {
		return nil // which has no such cache
	}
	return cached("1")
}

// questions are our own queries, and those of tools.sql.
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
	many, err := d.ids(ctx, "SELECT TraceId FROM spans WHERE Timestamp >= '2026-10-14 12:30:00' "+
		"AND Timestamp < '2026-10-14 12:35:00' AND ParentSpanId = '' ORDER BY SpanId LIMIT 100")
	if err != nil {
		return nil, err
	}

	s := schemas[l.Name]
	newest := bind(s.Newest(noon.Add(-4*time.Minute), noon, [16]byte{}, 100))
	if l == exporter {
		// its newest roots, as Grafana lists them
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
	some := func(ids ...[16]byte) string {
		if l == exporter {
			return exporterTraces(table, ids)
		}
		return bind(clickhouse.Traces(s, ids))
	}
	one := func(id [16]byte) string { return some(id) }
	bare := func(id [16]byte) string {
		return "SELECT * FROM spans WHERE TraceId = '" + hex.EncodeToString(id[:]) + "'"
	}
	all := []question{
		{"ours: one trace", each(ordered, one)},
		{"ours: 100 traces of 5 min", []string{some(many...)}},
		{"ours: newest 100 traces of 4 min", []string{newest}},
		{"ours: spans of 5 min", []string{bind(s.Spans(noon, noon.Add(5*time.Minute)))}},
		{"TraceId = …", each(ordered, bare)},
	}
	if l.Random > 0 {
		all = append(all, question{"ours: one trace of a random ID", each(random, one)},
			question{"TraceId = … of a random ID", each(random, bare)})
	}
	// A search without a time ends where the span is found: the mean of many tells
	// the layouts apart, one would be chance.
	spans, err := d.Query(ctx, "SELECT SpanId FROM spans WHERE toDate(Timestamp, 'UTC') = "+
		"'2026-10-14' ORDER BY cityHash64(SpanId) LIMIT 24")
	if err != nil {
		return nil, err
	}
	id := hex.EncodeToString(ordered[0][:])
	span, err := d.Query(ctx, "SELECT min(SpanId) FROM spans WHERE TraceId = '"+id+"'")
	if err != nil {
		return nil, err
	}
	for _, m := range regexp.MustCompile(`(?m)^-- (\w.*: .*)\n(.*);$`).FindAllStringSubmatch(
		toolsSQL, -1) {
		on := func(span string) string {
			return strings.NewReplacer("{table}", table, "{trace}", id, "{span}",
				span).Replace(m[2])
		}
		q := question{m[1], []string{on(span.Rows[0][0])}}
		if strings.Contains(m[2], "WHERE SpanId = '{span}'") {
			q.sql = nil
			for _, row := range spans.Rows {
				q.sql = append(q.sql, on(row[0]))
			}
		}
		all = append(all, q)
	}
	return all, nil
}

// traces are four of the day.
func (d *dataset) traces(ctx context.Context, where string) ([][16]byte, error) {
	return d.ids(ctx, "SELECT TraceId FROM spans WHERE ParentSpanId = '' AND SpanId IN (SELECT "+
		"SpanId FROM source WHERE ParentSpanId = '' AND "+where+
		" AND toDate(Timestamp, 'UTC') = '2026-10-14' ORDER BY h2 LIMIT 4) ORDER BY SpanId")
}

func (d *dataset) ids(ctx context.Context, query string) (ids [][16]byte, err error) {
	r, err := d.Query(ctx, query)
	if err != nil {
		return nil, err
	}
	for _, row := range r.Rows {
		id, err := hex.DecodeString(row[0])
		if err != nil || len(id) != 16 {
			return nil, fmt.Errorf("%s is not a trace ID", row[0])
		}
		ids = append(ids, [16]byte(id))
	}
	return ids, nil
}

// exporterTraces finds the time of traces in the lookup table first, as the exporter's
// documentation has it.
func exporterTraces(table string, ids [][16]byte) string {
	texts := make([]string, len(ids))
	for i, id := range ids {
		texts[i] = "'" + hex.EncodeToString(id[:]) + "'"
	}
	return strings.NewReplacer("{ids}", "TraceId IN ("+strings.Join(texts, ", ")+")", "{table}",
		table).Replace("SELECT * FROM {table} WHERE {ids}\n" +
		"AND Timestamp >= (SELECT min(Start) FROM {table}_trace_id_ts WHERE {ids})\n" +
		"AND Timestamp <= (SELECT max(End) + 1 FROM {table}_trace_id_ts WHERE {ids})\nORDER BY " +
		"TraceId, Timestamp, SpanId")
}

// bind puts the values into the text. The queries here are valid by construction.
func bind(q clickhouse.Query, err error) string {
	if err != nil {
		panic(err)
	}
	for _, p := range q.Params {
		quoted := "'" + p.Value + "'"
		q.SQL = strings.NewReplacer("{"+p.Name+":String}", quoted, "{"+p.Name+":Array(String)}",
			p.Value,
			"{"+p.Name+":DateTime64(9, 'UTC')}", "toDateTime64("+quoted+
				", 9, 'UTC')").Replace(q.SQL)
	}
	return q.SQL
}
