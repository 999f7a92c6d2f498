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

// cost is what a query read, with ClickHouse's caches empty.
type cost struct {
	Name  string
	Rows  uint64
	Disk  uint64 // bytes from files: columns, marks and indexes
	Found int    // rows of the result
}

// measured is one layout, merged.
type measured struct {
	Name   string
	Random int
	Bytes  float64 // on disk, a span, with the lookup table
	Costs  []cost
}

func (m measured) layout() layout { return layout{m.Name, m.Random} }

// cpuRatio is the CPU time to load and merge a layout, for one of the exporter's:
// the median of interleaved rounds, and all of them.
type cpuRatio struct {
	Layout string
	Random int
	Spans  int
	Ratio  float64
	Rounds []float64
}

// question is one query; several statements if the next depends on what is found.
type question struct {
	name, sql string
	until     int      // rows that end it
	next      []string // asked in turn until there are so many
	mean      bool     // of all of them
}

func (d *dataset) measure(ctx context.Context, l layout) (m measured, err error) {
	m = measured{Name: l.Name, Random: l.Random}
	if _, err := d.load(ctx, l); err != nil {
		return m, err
	}
	if err := d.scan(ctx, "SELECT sum(bytes_on_disk) FROM system.parts WHERE active AND database = currentDatabase() AND startsWith(table, 'spans')", &m.Bytes); err != nil {
		return m, err
	}
	m.Bytes /= float64(d.spans)
	questions, err := d.questions(ctx, l)
	if err != nil {
		return m, err
	}
	for _, q := range questions {
		c := cost{Name: q.name}
		for _, sql := range append([]string{q.sql}, q.next...) {
			found, read, err := d.Reads(ctx, sql)
			if err != nil {
				return m, fmt.Errorf("%s: %w", q.name, err)
			}
			c.Rows, c.Disk, c.Found = c.Rows+read.Rows, c.Disk+read.Disk, len(found.Rows)
			if c.Found >= q.until && !q.mean {
				break
			}
		}
		if n := uint64(1 + len(q.next)); q.mean {
			c.Rows, c.Disk = c.Rows/n, c.Disk/n
		}
		m.Costs = append(m.Costs, c)
	}
	return m, nil
}

// questions are our own queries, and those of tools.sql. On the exporter's table
// ours find the time in its lookup table first, as its documentation has it.
func (d *dataset) questions(ctx context.Context, l layout) ([]question, error) {
	noon := day.Add(12*time.Hour + 30*time.Minute)
	// The one trace has a random ID wherever some have: it costs more.
	rows, err := d.Query(ctx, "SELECT TraceId, min(SpanId) AS span FROM spans WHERE Timestamp >= '2026-10-14 12:30:00' AND Timestamp < '2026-10-14 12:35:00'\n"+
		"GROUP BY TraceId HAVING count() = 8 AND countIf(ParentSpanId = '') = 1\n"+
		"ORDER BY ifNull(toDate(traceIDTime(TraceId)) = '2026-10-14', 0), cityHash64(span) LIMIT 1")
	if err != nil {
		return nil, err
	}
	one := rows.Rows[0]
	many, err := d.Query(ctx, "SELECT TraceId FROM spans WHERE Timestamp >= '2026-10-14 12:30:00' AND Timestamp < '2026-10-14 12:35:00' AND ParentSpanId = '' ORDER BY SpanId LIMIT 100")
	if err != nil {
		return nil, err
	}
	var ids [][16]byte
	for _, row := range append([][]string{one}, many.Rows...) {
		id, err := hex.DecodeString(row[0])
		if err != nil || len(id) != 16 {
			return nil, fmt.Errorf("%s is not a trace ID", row[0])
		}
		ids = append(ids, [16]byte(id))
	}

	s := schemas[l.Name]
	s.Table = table
	byID := func(ids [][16]byte) string { return bind(clickhouse.Traces(s, ids)) }
	newest := question{name: "ours: newest 100 traces", until: 100}
	for from := range clickhouse.Widening(day, noon) {
		newest.next = append(newest.next, bind(s.Newest(from, noon, [16]byte{}, 100)))
	}
	newest.sql, newest.next = newest.next[0], newest.next[1:]
	if l.isExporters() {
		s.ReadOnly = true // its documentation sends no settings
		byID = func(ids [][16]byte) string {
			sql := bind(clickhouse.TracesEverywhere(s, ids))
			_, where, _ := strings.Cut(sql, "\nWHERE ")
			where, _, _ = strings.Cut(where, "\n")
			return strings.Replace(sql, "\nWHERE ", fmt.Sprintf("\nWHERE Timestamp >= (SELECT min(Start) FROM spans_trace_id_ts WHERE %[1]s) AND Timestamp <= (SELECT max(End) + 1 FROM spans_trace_id_ts WHERE %[1]s) AND ", where), 1)
		}
		newest = question{name: newest.name, sql: "SELECT TraceId, ServiceName, SpanName, Timestamp, Duration FROM spans\n" + // its newest roots, as Grafana lists them
			"WHERE Timestamp >= '2026-10-14 00:00:00' AND Timestamp < '2026-10-14 12:30:00' AND ParentSpanId = ''\nORDER BY Timestamp DESC LIMIT 100"}
	}
	all := []question{
		{name: "ours: one trace", sql: byID(ids[:1])},
		{name: "ours: 100 traces of 5 min", sql: byID(ids[1:])},
		newest,
		{name: "ours: spans of 5 min", sql: bind(s.Spans(noon, noon.Add(5*time.Minute)))},
	}
	// A search without a time ends where the span is found: the mean of many tells
	// the layouts apart, one would be chance.
	some, err := d.Query(ctx, "SELECT SpanId FROM spans WHERE toDate(Timestamp, 'UTC') = '2026-10-14' ORDER BY cityHash64(SpanId) LIMIT 24")
	if err != nil {
		return nil, err
	}
	for _, m := range regexp.MustCompile(`(?m)^-- (\w.*: .*)\n(.*);$`).FindAllStringSubmatch(toolsSQL, -1) {
		q := question{name: m[1], sql: strings.NewReplacer("{table}", table, "{trace}", one[0], "{span}", one[1]).Replace(m[2])}
		if strings.Contains(m[2], "WHERE SpanId = '{span}'") {
			q.name, q.mean = fmt.Sprintf("%s (mean of %d)", q.name, len(some.Rows)), true
			for _, row := range some.Rows[1:] {
				q.next = append(q.next, strings.NewReplacer("{table}", table, "{span}", row[0]).Replace(m[2]))
			}
			q.sql = strings.NewReplacer("{table}", table, "{span}", some.Rows[0][0]).Replace(m[2])
		}
		all = append(all, q)
	}
	return all, nil
}

// bind puts the values into the text. The queries here are valid by construction.
func bind(q clickhouse.Query, err error) string {
	if err != nil {
		panic(err)
	}
	for _, p := range q.Params {
		quoted := "'" + p.Value + "'"
		q.SQL = strings.NewReplacer("{"+p.Name+":String}", quoted, "{"+p.Name+":Array(String)}", p.Value,
			"{"+p.Name+":DateTime64(9, 'UTC')}", "toDateTime64("+quoted+", 9, 'UTC')").Replace(q.SQL)
	}
	return q.SQL
}

// cpu loads the exporter's table and ours in turn, so that a busy machine slows
// all of them down alike.
func (d *dataset) cpu(ctx context.Context, rounds int, only string) ([]cpuRatio, error) {
	var all []cpuRatio
	for _, l := range []layout{{"service", 0}, {keepLookup, 0}, {"trace", 0}, {textIndex, 100}, {bucketed, 0}} {
		if l.isOneOf(only) {
			all = append(all, cpuRatio{Layout: l.Name, Random: l.Random, Spans: d.spans})
		}
	}
	for range rounds {
		base, err := d.load(ctx, layout{exporter, 100})
		if err != nil {
			return nil, err
		}
		for i := range all {
			ours, err := d.load(ctx, layout{all[i].Layout, all[i].Random})
			if err != nil {
				return nil, err
			}
			all[i].Rounds = append(all[i].Rounds, ours/base)
		}
	}
	for i := range all {
		sorted := slices.Sorted(slices.Values(all[i].Rounds))
		all[i].Ratio = (sorted[(rounds-1)/2] + sorted[rounds/2]) / 2
	}
	return all, nil
}
