package main

import (
	_ "embed" // the SQL
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"github.com/traceflake/traceflake/clickhouse"
)

// table is the name of the table of spans in every layout.
const table = "spans"

// layout is a way to store spans.
type layout struct {
	Name   string
	schema clickhouse.Schema // for our queries
	// elements are added to the exporter's table.
	elements string
	// change replaces texts in the statements: old and new in turn.
	change []string
}

var (
	//go:embed sql/collector.sql
	collectorTable string
	//go:embed sql/lookup.sql
	lookupTable string
)

// exporter is the layout to which the others are compared: the table of the Collector's exporter,
// with its lookup table.
var exporter = layout{Name: "exporter", schema: theirs}

var (
	ours   = clickhouse.Schema{Table: table}
	theirs = clickhouse.Schema{Table: table, Overlay: true, ReadOnly: true}
)

// layouts lists all layouts. Those whose names begin with "ours:" show what a choice in our table
// costs.
var layouts = []layout{
	exporter,
	{Name: "ours", schema: ours},
	{Name: "overlay", schema: clickhouse.Schema{Table: table, Overlay: true}},
	{Name: "projection", schema: theirs,
		elements: "PROJECTION by_trace (SELECT * ORDER BY TraceId)"},
	{Name: "light projection", schema: theirs,
		elements: "PROJECTION by_trace (SELECT TraceId, _part_offset ORDER BY TraceId)"},
	{Name: "ours: all blocks of 8 kB", schema: ours,
		change: []string{wide, ""}},
	{Name: "ours: all blocks of 64 kB", schema: ours, change: []string{
		"min_compress_block_size = 8192, ttl_only_drop_parts = 1, default",
		"min_compress_block_size = 65536, ttl_only_drop_parts = 1, default"}},
	{Name: "ours: times and IDs in blocks of 64 kB", schema: ours,
		change: inWideBlocks("Timestamp DateTime64(9) CODEC(T64, ZSTD(1))",
			"Duration UInt64 CODEC(T64, ZSTD(1))", "    TraceId String CODEC(ZSTD(1))")},
	{Name: "ours: attributes ZSTD(1)", schema: ours, change: []string{"ZSTD(1, 20)", "ZSTD(1)"}},
	{Name: "ours: outliers by trace", schema: ours,
		change: []string{"7200000, '', TraceId), Timestamp",
			"7200000, TraceId, TraceId), Timestamp"}},
	{Name: "ours: two levels of ranges", schema: ours, change: []string{"INDEX idx_trace_id_range ",
		"INDEX idx_trace_id_wide TraceId TYPE minmax GRANULARITY 64,\n" +
			"    INDEX idx_trace_id_range "}},
	{Name: "ours: wide parts from 10 MB", schema: ours,
		change: []string{"min_bytes_for_wide_part = 33554432, ", ""}},
	{Name: "ours: lengths of all texts apart", schema: ours, change: []string{
		"propagate_types_serialization_versions_to_nested_types = 0, ", ""}},
	{Name: "ours: lengths of no texts apart", schema: ours, change: []string{
		"propagate_types_serialization_versions_to_nested_types = 0",
		"string_serialization_version = 'single_stream'"}},
	{Name: "ours: granules of 1536", schema: ours, change: granules("1536")},
	{Name: "ours: granules of 2048", schema: ours, change: granules("2048")},
	{Name: "ours: granules of 8192", schema: ours, change: granules("8192")},
	{Name: "ours: ID filters of 2.5 %", schema: ours,
		change: []string{"bloom_filter(0.005)", "bloom_filter(0.025)"}},
}

// wide are the settings of a column that has blocks of 64 kB.
const wide = " SETTINGS (min_compress_block_size = 65536)"

func inWideBlocks(columns ...string) (change []string) {
	for _, column := range columns {
		change = append(change, column, column+wide)
	}
	return change
}

func granules(spans string) []string {
	return []string{"index_granularity = 1024", "index_granularity = " + spans}
}

// named returns the layouts with these names, separated by semicolons.
func named(names string) (all []layout, err error) {
	for name := range strings.SplitSeq(names, ";") {
		i := slices.IndexFunc(layouts, func(l layout) bool { return l.Name == name })
		if i < 0 {
			return nil, fmt.Errorf("no layout is called %q", name)
		}
		all = append(all, layouts[i])
	}
	return all, nil
}

// statements returns the statements that create the tables.
func (l layout) statements() (all []string, err error) {
	if l.schema.Overlay {
		spans := strings.Replace(collectorTable, "GRANULARITY 1\n)",
			"GRANULARITY 1"+strings.TrimSuffix(",\n    "+l.elements, ",\n    ")+"\n)", 1)
		all = strings.Split(strings.ReplaceAll(spans+";\n"+lookupTable, "{table}", table), ";\n")
	}
	if !l.schema.ReadOnly {
		own, err := l.schema.Statements()
		if err != nil {
			return nil, err
		}
		all = append(all, own...)
	}
	text := strings.Join(all, "\x00")
	changed := strings.NewReplacer(l.change...).Replace(text)
	if len(l.change) > 0 && changed == text {
		return nil, fmt.Errorf("%s: the statements have nothing to replace", l.Name)
	}
	return strings.Split(changed, "\x00"), nil
}

// traces returns our query for traces, or that of the exporter's documentation, which finds their
// times in the lookup table first. A projection needs no times.
func (l layout) traces(ids ...[16]byte) string {
	if !l.schema.ReadOnly {
		return bind(clickhouse.Traces(l.schema, ids))
	}
	texts := make([]string, len(ids))
	for i, id := range ids {
		texts[i] = "'" + hex.EncodeToString(id[:]) + "'"
	}
	where := "TraceId IN (" + strings.Join(texts, ", ") + ")"
	query := "SELECT * FROM " + table + " WHERE " + where
	if l.elements == "" {
		const times = "FROM " + table + "_trace_id_ts WHERE "
		query += "\nAND Timestamp >= (SELECT min(Start) " + times + where +
			")\nAND Timestamp <= (SELECT max(End) + 1 " + times + where + ")"
	}
	return query + "\nORDER BY TraceId, Timestamp, SpanId"
}

// bare returns the query with which HyperDX finds a trace.
func bare(id [16]byte) string {
	return fmt.Sprintf("SELECT * FROM %s WHERE TraceId = '%x'", table, id)
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
